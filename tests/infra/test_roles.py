"""Each function may do what it does, and nothing else."""

import json

import pytest

from stepwell_engine.adapters.dynamodb.models import DueRuns, RunsOfWorkflow
from tests.infra.synthesize import CHOSEN
from tests.infra.templates import Assembly, Template, actions, arn_of, listed, resources, statements

ROLES = ("ComputeApiRole", "ComputeExecutorRole", "ComputeTickRole", "ComputeSchedulerRole")
LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
OWN_QUEUES = "stepwell-dev-q-*"


@pytest.fixture(scope="module")
def compute(default: Assembly) -> Template:
    return default.template("compute")


def test_the_api_may(compute: Template) -> None:
    assert actions(compute, "ComputeApiRole") == LOG | {
        "dynamodb:BatchGetItem",
        "dynamodb:DeleteItem",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "kms:Encrypt",
        "sqs:CreateQueue",
        "sqs:DeleteMessage",
        "sqs:DeleteQueue",
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        "sqs:SendMessage",
        "sqs:SetQueueAttributes",
    }


def test_the_executor_may(compute: Template) -> None:
    assert actions(compute, "ComputeExecutorRole") == LOG | {
        "dynamodb:BatchGetItem",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "kms:Decrypt",
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        "sqs:SendMessage",
    }


def test_the_tick_reads_what_is_due_sends_hints_and_invokes_itself(compute: Template) -> None:
    assert actions(compute, "ComputeTickRole") == LOG | {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "lambda:InvokeFunction",
        "sqs:SendMessage",
    }
    (itself,) = resources(compute, "ComputeTickRole", "lambda:InvokeFunction")
    assert ":function:stepwell-dev-tick" in itself
    assert compute.one("Lambda::Function", "TickFunction")["FunctionName"] == "stepwell-dev-tick"
    (due,) = resources(compute, "ComputeTickRole", "dynamodb:Query")
    assert f"/index/{DueRuns.Meta.index_name}" in due
    (hints,) = resources(compute, "ComputeTickRole", "sqs:SendMessage")
    assert json.loads(hints) == arn_of(compute.name("SQS::Queue", "MessagingHints"))


def test_the_schedule_may_invoke_the_tick_and_leave_dead_letters(compute: Template) -> None:
    role = "ComputeSchedulerRole"
    assert actions(compute, role) == {"lambda:InvokeFunction", "sqs:SendMessage"}
    (tick,) = resources(compute, role, "lambda:InvokeFunction")
    assert json.loads(tick) == arn_of(compute.name("Lambda::Function", "TickFunction"))
    (dead,) = resources(compute, role, "sqs:SendMessage")
    assert json.loads(dead) == arn_of(compute.name("SQS::Queue", "DeadTicks"))


def test_only_the_executor_sends_suspects_to_where_they_are_alone(compute: Template) -> None:
    alone = json.dumps(arn_of(compute.name("SQS::Queue", "MessagingAlone")))
    senders = {role for role in ROLES if alone in resources(compute, role, "sqs:SendMessage")}
    assert senders == {"ComputeExecutorRole"}


@pytest.mark.parametrize("queue", ["MessagingHints", "MessagingAlone"])
def test_only_the_executor_takes_hints(compute: Template, queue: str) -> None:
    hints = json.dumps(arn_of(compute.name("SQS::Queue", queue)))
    takers = {
        role
        for role in ROLES
        for action in (
            *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:DeleteQueue"),
            "sqs:ChangeMessageVisibility",
        )
        if hints in resources(compute, role, action)
    }
    assert takers == {"ComputeExecutorRole"}


def test_the_api_handles_the_queues_of_projects_and_no_other(compute: Template) -> None:
    for action in ("sqs:CreateQueue", "sqs:DeleteQueue", "sqs:ReceiveMessage"):
        (found,) = resources(compute, "ComputeApiRole", action)
        assert f":{OWN_QUEUES}" in found


def test_no_queue_of_the_installation_has_a_name_like_the_queues_of_projects(
    default: Assembly,
) -> None:
    # CloudFormation begins a name that it makes with that of the stack.
    for stack in ("data", "compute", "api", "watch"):
        assert not f"{default.name}-{stack}-".startswith(OWN_QUEUES.removesuffix("*"))
    for queue in default.template("compute").all("SQS::Queue").values():
        assert "QueueName" not in queue["Properties"]


def test_the_api_seals_secrets_and_the_executor_opens_them(compute: Template) -> None:
    users = {
        (role, action)
        for role in ROLES
        for action in actions(compute, role)
        if action.startswith("kms:")
    }
    assert users == {("ComputeApiRole", "kms:Encrypt"), ("ComputeExecutorRole", "kms:Decrypt")}
    for role, action in users:
        (key,) = resources(compute, role, action)
        assert "StorageKey" in key


def test_the_lists_of_the_api_are_read_from_their_index(compute: Template) -> None:
    found = resources(compute, "ComputeApiRole", "dynamodb:Query")
    index = f"/index/{RunsOfWorkflow.Meta.index_name}"
    assert len([one for one in found if index in one]) == 1
    (control,) = (one for one in found if index not in one)
    assert "StorageControl" in control


def test_the_executor_looks_how_many_runs_there_are_and_reads_their_signals(
    compute: Template,
) -> None:
    found = resources(compute, "ComputeExecutorRole", "dynamodb:Query")
    index = f"/index/{RunsOfWorkflow.Meta.index_name}"
    assert len([one for one in found if index in one]) == 1
    (runs,) = (one for one in found if index not in one)
    assert "StorageRuns" in runs


def test_the_executor_reads_several_pages_and_outputs_at_once(compute: Template) -> None:
    found = resources(compute, "ComputeExecutorRole", "dynamodb:BatchGetItem")
    assert any("StorageRuns" in one for one in found)


def test_the_executor_only_reads_definitions(compute: Template) -> None:
    for action in ("dynamodb:PutItem", "dynamodb:UpdateItem"):
        (found,) = resources(compute, "ComputeExecutorRole", action)
        assert "StorageRuns" in found


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_one_policy_with_whole_names(
    default: Assembly, chosen: Assembly, role: str
) -> None:
    for assembly in (default, chosen):
        compute = assembly.template("compute")
        assert "ManagedPolicyArns" not in compute.one("IAM::Role", role)
        assert not [action for action in actions(compute, role) if "*" in action]
        allowed = {f"{assembly.name}-q-*", CHOSEN["functions"]}
        for statement in statements(compute, role):
            assert statement["Effect"] == "Allow"
            for resource in map(json.dumps, listed(statement["Resource"])):
                assert "*" not in resource or any(name in resource for name in allowed)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_for_one_service(compute: Template, role: str) -> None:
    (statement,) = compute.one("IAM::Role", role)["AssumeRolePolicyDocument"]["Statement"]
    service = "scheduler" if "Scheduler" in role else "lambda"
    assert statement["Principal"] == {"Service": f"{service}.amazonaws.com"}


def test_steps_reach_what_was_chosen_by_its_arn(chosen: Assembly) -> None:
    compute = chosen.template("compute")
    role = "ComputeExecutorRole"
    assert resources(compute, role, "lambda:InvokeFunction") == [json.dumps(CHOSEN["functions"])]
    assert resources(compute, role, "rds-data:ExecuteStatement") == [
        json.dumps(CHOSEN["databases"])
    ]
    assert resources(compute, role, "secretsmanager:GetSecretValue") == [
        json.dumps(CHOSEN["secrets"])
    ]
    assert "lambda:InvokeFunction" not in actions(compute, "ComputeApiRole")


def test_a_role_writes_its_own_log_only(compute: Template) -> None:
    for name in ("Api", "Executor", "Tick"):
        (log,) = resources(compute, f"Compute{name}Role", "logs:PutLogEvents")
        assert json.loads(log) == arn_of(compute.name("Logs::LogGroup", f"{name}Log"))
