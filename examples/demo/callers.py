"""Who speaks with a coordinator in the demo: a job that boosts a table, and a fleet that reports its demand."""

from __future__ import annotations

from dataclasses import dataclass

import boto3

import highwater
from highwater import BoostAnswer, Pulse
from highwater.client.coordinator import CoordinatorClient
from highwater.core.names import coordinator_parameter, pulses_parameter
from highwater_lab.local import LocalCloud
from highwater_lab.local.lockstep import SeatClock


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a grant: the ARN of its role, and the name of the coordinator that granted."""

    role_arn: str
    coordinator: str

    def boost(self, cloud: LocalCloud, table: str, write_rate: int, minutes: int) -> BoostAnswer:
        """Ask for so many units per second on top of the present traffic."""
        return highwater.boost(
            table,
            write_rate=write_rate,
            minutes=minutes,
            reason="the surge",
            coordinator=self._url(cloud),
            session=self._session(cloud),
        ).begin()

    def pulse(self, cloud: LocalCloud, clock: SeatClock) -> Pulse:
        """Report what clients ask for; as `highwater.pulse` does it, but by the cloud's clock."""
        session = self._session(cloud)
        coordinator = CoordinatorClient(coordinator=self._url(cloud), session=session, attempts=1)
        # the session does not know where the local cloud is, so its clients are not asked for the table
        coordinator.pulse_table = _value(cloud, pulses_parameter(self.coordinator))
        return Pulse(
            dynamodb=session.client("dynamodb", endpoint_url=cloud.endpoint),
            coordinator=coordinator,
            clock=clock.time,
            pause=clock.sleep,
            has_thread=False,
        )

    def _session(self, cloud: LocalCloud) -> boto3.Session:
        given = cloud.client("sts").assume_role(RoleArn=self.role_arn, RoleSessionName="demo")["Credentials"]
        region = cloud.client_arguments()["region_name"]
        return boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], region)

    def _url(self, cloud: LocalCloud) -> str:
        return _value(cloud, coordinator_parameter(self.coordinator))


def _value(cloud: LocalCloud, parameter: str) -> str:
    return str(cloud.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"])
