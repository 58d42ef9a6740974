"""An AWS account, or an emulator of one, as far as a deployment needs it: S3 and CloudFormation."""

import io
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError, WaiterError  # type: ignore[import-untyped]

from infra.assembly import DeployError, File, Stack, Target

# Every file in an archive gets this time, so that the same content is the same archive.
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
_PATIENCE: Final = 3600  # seconds for one stack
_MISSING: Final = ("404", "NoSuchBucket", "NoSuchKey", "NotFound")
_FRESH: Final = ("ABSENT", "REVIEW_IN_PROGRESS", "DELETE_COMPLETE")
# What a first deployment that failed leaves behind: it can only be deleted.
_FAILED_AT_FIRST: Final = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED")


@dataclass(frozen=True)
class Cloud:
    """Clients of one account and region. `pause` in seconds, between two looks at a stack."""

    s3: Any
    cloudformation: Any
    target: Target
    pause: float

    # --- files --------------------------------------------------------------------------------

    def upload(self, files: Sequence[File]) -> int:
        """Put what is not there yet; how many files that were. Names are hashes of contents."""
        for bucket in sorted({file.bucket for file in files}):
            self._ensure(bucket)
        fresh = [file for file in files if not self._is_there(file)]
        for file in fresh:
            body = pack(file.source) if file.zipped else file.source.read_bytes()
            self.s3.put_object(
                Bucket=file.bucket,
                Key=file.key,
                Body=body,
                ExpectedBucketOwner=self.target.account,
            )
        return len(fresh)

    def drop_bucket(self, bucket: str) -> bool:
        """Delete a bucket with all in it; False if there is none."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, ExpectedBucketOwner=self.target.account
        )
        try:
            for page in pages:
                keys = [{"Key": one["Key"]} for one in page.get("Contents", ())]
                if keys:
                    self.s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})
        except ClientError as error:
            if _code(error) in _MISSING:
                return False
            raise
        self.s3.delete_bucket(Bucket=bucket)
        return True

    def _ensure(self, bucket: str) -> None:
        # The name can be guessed: files must not go to somebody else who took it first.
        try:
            self.s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=self.target.account)
        except ClientError as error:
            if _code(error) not in _MISSING:
                raise DeployError(f"the bucket {bucket} cannot be used: {error}") from error
            region = self.target.region
            where = {} if region == "us-east-1" else {"LocationConstraint": region}
            configuration = {"CreateBucketConfiguration": where} if where else {}
            self.s3.create_bucket(Bucket=bucket, **configuration)

    def _is_there(self, file: File) -> bool:
        try:
            self.s3.head_object(Bucket=file.bucket, Key=file.key)
        except ClientError as error:
            if _code(error) in _MISSING:
                return False
            raise
        return True

    # --- stacks -------------------------------------------------------------------------------

    def deploy(self, stack: Stack) -> bool:
        """Create or update a stack by a change set; False if there was nothing to change."""
        status = self.status(stack.name)
        if status in _FAILED_AT_FIRST:
            self.delete(stack.name)
            status = "ABSENT"
        is_new = status in _FRESH
        if not is_new and status.endswith("_IN_PROGRESS"):
            raise DeployError(f"{stack.name} is being changed ({status}): wait for its end")
        names = {"StackName": stack.name, "ChangeSetName": f"deploy-{uuid.uuid4().hex}"}
        self.cloudformation.create_change_set(
            **names,
            ChangeSetType="CREATE" if is_new else "UPDATE",
            TemplateURL=f"{self.s3.meta.endpoint_url}/{stack.template.bucket}/{stack.template.key}",
            Capabilities=["CAPABILITY_IAM"],
            Tags=[{"Key": key, "Value": value} for key, value in stack.tags.items()],
        )
        if not self._has_changes(names):
            self.cloudformation.delete_change_set(**names)
            return False
        self.cloudformation.execute_change_set(**names)
        self._wait("stack_create_complete" if is_new else "stack_update_complete", stack.name)
        return True

    def delete(self, name: str) -> None:
        """Delete a stack and wait for its end; one that does not exist is none the worse."""
        self.cloudformation.delete_stack(StackName=name)
        self._wait("stack_delete_complete", name)

    def status(self, name: str) -> str:
        """A stack's status, or ABSENT."""
        found = self._describe(name)
        return "ABSENT" if found is None else str(found["StackStatus"])

    def outputs(self, name: str) -> Mapping[str, str]:
        """What a stack says to people; not what it exports to other stacks."""
        found = self._describe(name) or {}
        return {
            output["OutputKey"]: output["OutputValue"]
            for output in found.get("Outputs", ())
            if "ExportName" not in output
        }

    def resources(self, name: str) -> Mapping[str, str]:
        """The physical names of what is in a stack, by the names in its template."""
        pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
        return {
            one["LogicalResourceId"]: one["PhysicalResourceId"]
            for page in pages
            for one in page["StackResourceSummaries"]
        }

    def _describe(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return found

    def _has_changes(self, names: Mapping[str, str]) -> bool:
        waiter = self.cloudformation.get_waiter("change_set_create_complete")
        try:
            waiter.wait(**names, WaiterConfig=self._waiting())
        except WaiterError as error:
            reason = str(error.last_response.get("StatusReason", error))
            if "didn't contain changes" in reason or "No updates" in reason:
                return False
            raise DeployError(f"{names['StackName']}: {reason}") from error
        return True

    def _wait(self, what: str, name: str) -> None:
        try:
            waiter = self.cloudformation.get_waiter(what)
            waiter.wait(StackName=name, WaiterConfig=self._waiting())
        except WaiterError as error:
            reasons = "\n".join(f"  {reason}" for reason in self._failures(name))
            raise DeployError(f"{name}: {self.status(name)}\n{reasons}".rstrip()) from error

    def _waiting(self) -> Mapping[str, float]:
        return {"Delay": self.pause, "MaxAttempts": int(_PATIENCE / self.pause)}

    def _failures(self, name: str) -> Iterator[str]:
        """Why the last change failed, first cause first."""
        events: list[dict[str, Any]] = []
        with suppress(ClientError):
            events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        for event in reversed(events):
            reason = event.get("ResourceStatusReason")
            if reason and event["ResourceStatus"].endswith("FAILED"):
                yield f"{event['LogicalResourceId']}: {reason}"


def connect(
    region: str | None = None,
    profile: str | None = None,
    endpoint: str | None = None,
    pause: float = 5,
) -> Cloud:
    """The account that the credentials of the AWS SDK belong to; `endpoint` is an emulator's URL.

    DeployError without a region.
    """
    session = boto3.Session(region_name=region, profile_name=profile)
    if session.region_name is None:
        raise DeployError("no region: give --region, or set one for the AWS SDK")
    # An emulator has one host name, so buckets are told apart by the path.
    style = Config(s3={"addressing_style": "path"}) if endpoint else None
    options: dict[str, Any] = {"endpoint_url": endpoint, "config": style}
    caller = session.client("sts", **options).get_caller_identity()
    return Cloud(
        s3=session.client("s3", **options),
        cloudformation=session.client("cloudformation", **options),
        target=Target(caller["Account"], session.region_name, caller["Arn"].split(":")[1]),
        pause=pause,
    )


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def pack(folder: Path) -> bytes:
    """A folder as a zip archive; the same content gives the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _ZIP_TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())
    return packed.getvalue()
