"""The HTTP API: one function answers every route; who may do what is decided in there."""

import json
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra.installation import Installation
from infra.logs import log_group
from infra.nag import acknowledge

# No header and no query: a token never reaches the log.
_LOGGED: Final = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "milliseconds": "$context.responseLatency",
    "bytes": "$context.responseLength",
    "error": "$context.error.message",
    "integrationError": "$context.integrationErrorMessage",
}


class Api(Construct):
    """The API `http` and its `url`. API Gateway speaks TLS 1.2 and later, and nothing else."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        installation: Installation,
        handler: lambda_.IFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        self.http = gateway.HttpApi(
            self,
            "Http",
            api_name=installation.name,
            create_default_stage=False,
            disable_execute_api_endpoint=installation.domain is not None,
            default_integration=HttpLambdaIntegration(
                "Handler",
                handler,
                payload_format_version=gateway.PayloadFormatVersion.VERSION_2_0,
                timeout=cdk.Duration.seconds(29),
            ),
        )
        acknowledge(
            self.http,
            {
                "AwsSolutions-APIG4": "Bearer tokens are checked by the function, which knows "
                "the project, the role and the permission that each route needs."
            },
        )
        stage = self._stage(installation)
        self.url = stage.url if installation.domain is None else f"https://{installation.domain}"
        if installation.domain is not None:
            self._domain(installation.domain, str(installation.certificate), stage)

    def _stage(self, installation: Installation) -> gateway.HttpStage:
        log = log_group(self, "AccessLog", installation)
        stage = gateway.HttpStage(
            self,
            "Stage",
            http_api=self.http,
            stage_name="$default",
            auto_deploy=True,
            throttle=gateway.ThrottleSettings(
                rate_limit=installation.throttle_rate, burst_limit=installation.throttle_burst
            ),
        )
        resource = cast(gateway.CfnStage, stage.node.default_child)
        resource.access_log_settings = gateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(_LOGGED)
        )
        return stage

    def _domain(self, name: str, certificate: str, stage: gateway.HttpStage) -> None:
        domain = gateway.DomainName(
            self,
            "Domain",
            domain_name=name,
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", certificate),
            security_policy=gateway.SecurityPolicy.TLS_1_2,
        )
        gateway.ApiMapping(self, "Mapping", api=self.http, domain_name=domain, stage=stage)
        cdk.CfnOutput(
            self,
            "DomainTarget",
            value=domain.regional_domain_name,
            description="what a CNAME record of the domain has to point at",
        )
