"""The API stack."""

import json

from tests.infra.synthesize import CHOSEN
from tests.infra.templates import Assembly


def test_every_route_goes_to_the_api_function_in_payload_format_2(default: Assembly) -> None:
    api = default.template("api")
    route = api.one("ApiGatewayV2::Route")
    assert route["RouteKey"] == "$default"
    integration = api.one("ApiGatewayV2::Integration")
    assert integration["IntegrationType"] == "AWS_PROXY"
    assert integration["PayloadFormatVersion"] == "2.0"
    assert "ComputeApiFunction" in integration["IntegrationUri"]["Fn::ImportValue"]
    function = default.template("compute").one("Lambda::Function", "ApiFunction")
    assert integration["TimeoutInMillis"] == 29_000
    assert function["Timeout"] * 1000 < integration["TimeoutInMillis"]


def test_only_this_api_may_invoke_the_function(default: Assembly) -> None:
    api = default.template("api")
    permission = api.one("Lambda::Permission")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    source = json.dumps(permission["SourceArn"])
    assert json.dumps({"Ref": api.name("ApiGatewayV2::Api", "Http")}) in source


def test_requests_are_throttled(default: Assembly, chosen: Assembly) -> None:
    for assembly, rate, burst in ((default, 100, 200), (chosen, 5, 9)):
        stage = assembly.template("api").one("ApiGatewayV2::Stage")
        assert stage["StageName"] == "$default"
        assert stage["AutoDeploy"] is True
        assert stage["DefaultRouteSettings"] == {
            "ThrottlingRateLimit": rate,
            "ThrottlingBurstLimit": burst,
        }


def test_requests_are_logged_without_tokens_or_bodies(default: Assembly, chosen: Assembly) -> None:
    for assembly, days in ((default, 30), (chosen, 7)):
        api = assembly.template("api")
        assert api.one("Logs::LogGroup")["RetentionInDays"] == days
        settings = api.one("ApiGatewayV2::Stage")["AccessLogSettings"]
        assert settings["DestinationArn"]["Fn::GetAtt"][0] == api.name("Logs::LogGroup", "Log")
        logged = json.loads(settings["Format"])
        assert {"requestId", "method", "path", "status", "milliseconds"} <= logged.keys()
        assert not [
            value for value in logged.values() if "header" in value or "authorizer" in value
        ]


def test_no_other_site_may_call_the_api_from_a_browser(default: Assembly) -> None:
    assert "CorsConfiguration" not in default.template("api").one("ApiGatewayV2::Api")


def test_the_url_is_an_output(default: Assembly, chosen: Assembly) -> None:
    assert "https://" in json.dumps(default.template("api").content["Outputs"]["Url"]["Value"])
    outputs = chosen.template("api").content["Outputs"]
    assert outputs["Url"]["Value"] == "https://runs.example.com"


def test_a_domain_of_your_own_is_the_only_way_in_and_speaks_tls_1_2(chosen: Assembly) -> None:
    api = chosen.template("api")
    assert api.one("ApiGatewayV2::Api")["DisableExecuteApiEndpoint"] is True
    domain = api.one("ApiGatewayV2::DomainName")
    assert domain["DomainName"] == CHOSEN["domain"]
    (configuration,) = domain["DomainNameConfigurations"]
    assert configuration["SecurityPolicy"] == "TLS_1_2"
    assert configuration["CertificateArn"] == CHOSEN["certificate"]
    assert api.one("ApiGatewayV2::ApiMapping")["Stage"] == "$default"
    (mapping,) = api.all("ApiGatewayV2::ApiMapping").values()
    assert api.name("ApiGatewayV2::Stage", "Stage") in mapping["DependsOn"]


def test_without_a_domain_there_is_none(default: Assembly) -> None:
    api = default.template("api")
    assert api.all("ApiGatewayV2::DomainName") == {}
    assert api.one("ApiGatewayV2::Api")["DisableExecuteApiEndpoint"] is False
