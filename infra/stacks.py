"""The stacks of an installation, in the order in which they are deployed.

`data` outlives the others: whoever destroys an installation keeps it unless they say otherwise.
"""

from typing import Final

import aws_cdk as cdk

from infra.alarms import Alarms, Watched
from infra.api import Api
from infra.bundle import Compiler
from infra.compute import Compute
from infra.dashboard import Dashboard
from infra.installation import CONTROL_TABLE, URL, Installation
from infra.storage import Storage, index_names

DATA: Final = "data"
BUCKET: Final = "assets-${AWS::AccountId}-${AWS::Region}"


def compose(
    app: cdk.App, installation: Installation, compiler: Compiler | None, bootstrapped: bool = False
) -> None:
    """Build the stacks data, compute, api and watch, each in a file of its own in the output.

    The code goes uncompiled without a `compiler`. `bootstrapped`: the assets go to the bucket that
    `cdk bootstrap` made, and not to the one that infra.deploy makes.
    """

    def stack(name: str) -> cdk.Stack:
        return _stack(app, installation, name, bootstrapped)

    data = stack(DATA)
    storage = Storage(data, "Storage", installation)
    cdk.CfnOutput(
        data,
        CONTROL_TABLE,
        value=storage.control.table_name,
        description="the table that python -m infra.owner writes to",
    )
    compute_stack = stack("compute")
    compute = Compute(compute_stack, "Compute", installation, storage, compiler)

    api_stack = stack("api")
    api = Api(api_stack, "Api", installation, compute.api)
    cdk.CfnOutput(api_stack, URL, value=str(api.url), description="where the API answers")

    watched = Watched(
        hints={"Hint": compute.messaging.hints, "AloneHint": compute.messaging.alone},
        dead_letters={
            "DeadHints": compute.messaging.dead_hints,
            "DeadTicks": compute.messaging.dead_ticks,
        },
        functions={"Api": compute.api, "Executor": compute.executor, "Tick": compute.tick},
        tick=compute.tick,
        tables={
            "Control": (storage.control, ()),
            "Runs": (storage.runs, index_names()),
        },
        api=api.http,
    )
    watch = stack("watch")
    alarms = Alarms(watch, "Alarms", installation, watched)
    Dashboard(watch, "Dashboard", installation, watched, alarms.all)


def _stack(app: cdk.App, installation: Installation, name: str, bootstrapped: bool) -> cdk.Stack:
    # Without a bootstrapped account the bucket of infra.deploy is the only preparation.
    synthesizer = (
        cdk.DefaultStackSynthesizer()
        if bootstrapped
        else cdk.CliCredentialsStackSynthesizer(
            file_assets_bucket_name=f"{installation.name}-{BUCKET}"
        )
    )
    return cdk.Stack(
        app,
        f"{installation.name}-{name}",
        description=f"Stepwell, {installation.environment}: {name}",
        tags={"stepwell": installation.environment},
        synthesizer=synthesizer,
    )
