"""The delays of the AWS services: all those that the simulation and the local cloud model, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from zlib import crc32

# How many seconds later than the alarms of a table's writes those of each further target are judged
_ALARMS_APART: Final = 23


@dataclass(frozen=True, slots=True)
class Pace:
    """The time from an UpdateTable call to the new capacity.

    Attributes:
        update_seconds: If the existing partitions suffice.
        growth_seconds: If DynamoDB has to add partitions.
    """

    update_seconds: int
    growth_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The seconds of each minute, 0 to 59, at which what happens every minute does; each table has its own by chance.

    CloudWatch judges each alarm once a minute at a second of its own (:02, :13, :43 and :59 recorded), Application Auto
    Scaling acts within a tenth of a second of its alarm, and repeats a minute later to the millisecond (radkawar/stackd
    9dc356f, testdata/aws/applicationautoscaling/dynamodb_maintenance, 2026-09).

    Attributes:
        tracking_alarm: The alarms of target tracking are judged, those of the table's writes.
        scaler_alarm: The alarms of the scaler are judged.
        tick: A schedule runs the scaler, or another function that scales.
    """

    tracking_alarm: int
    scaler_alarm: int
    tick: int

    def tracking_alarm_of(self, place: int) -> int:
        """Return the second for the target at that place: a table's writes, its reads, an index's writes, and so on."""
        return (self.tracking_alarm + place * _ALARMS_APART) % 60


# Six that spread each of these seconds evenly over the minute. Native scaling is ahead of the scaler's alarm by up to
# 40 seconds in some and behind in as many; in the first, the usual one, they are judged together, as is to be expected
# of two seconds that nobody chooses.
PHASES: Final = (
    Phase(tracking_alarm=25, scaler_alarm=25, tick=15),
    Phase(tracking_alarm=5, scaler_alarm=45, tick=35),
    Phase(tracking_alarm=15, scaler_alarm=55, tick=55),
    Phase(tracking_alarm=35, scaler_alarm=15, tick=5),
    Phase(tracking_alarm=45, scaler_alarm=5, tick=45),
    Phase(tracking_alarm=55, scaler_alarm=35, tick=25),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Delays, in seconds unless the name says otherwise. Most are recorded, measured or documented.

    Attributes:
        metric_delay: From the end of a minute to its datapoint in CloudWatch. "2 minutes or more" ("Handle traffic
            spikes with Amazon DynamoDB provisioned capacity"); alarms used a minute 102 to 134 s after its end, each at
            its second (radkawar/stackd 9dc356f, testdata/aws/applicationautoscaling/dynamodb_maintenance, 2026-09).
        phase: At which seconds alarms are judged and schedules run.
        scheduled_least: The least lateness of a scheduled action: 3.5 s recorded, and one of 43 above 47.5 s
            (testdata/aws/applicationautoscaling/activity_lifecycle of the same recordings).
        scheduled_most: The most.
        gauge_age: How much older the value of a datapoint of provisioned capacity is than its label. In the recordings
            of `metric_delay` it was 85 s or more, and a table that was 99 s old at a label had no datapoint.
        autoscaling_update: From an UpdateTable call by Application Auto Scaling to the new capacity, if the existing
            partitions suffice: 1.7 s recorded, 1.0 to 4.4 s measured after a floor was raised. The activity lasts 30 to
            37 s: Application Auto Scaling notices later that the change is complete.
        direct_update: From an UpdateTable call by a client to the new capacity, if the existing partitions suffice: 1.0
            to 2.3 s measured.
        growth: From an UpdateTable call to the new capacity, if DynamoDB has to add partitions: not documented; a
            warm-up was measured at 272 to 514 s.
        to_on_demand: A table's first switch from provisioned capacity to on-demand: 129 to 172 s measured.
        to_on_demand_again: A later switch of the same table to on-demand: 4.1 to 5.1 s measured.
        to_provisioned: A table's first switch from on-demand to provisioned capacity: 55 to 113 s measured, 90, 148 and
            288 s recorded (testdata/aws/dynamodb/billing_mode_limits and read_throttling of the same recordings).
        to_provisioned_again: A later switch of the same table to provisioned capacity: 3 to 10 s recorded.
        warm_up: From a call that raises warm throughput until it applies, if DynamoDB has to add partitions: 272 to
            514 s measured.
        warm_up_again: From a call that raises warm throughput until it applies, if the existing partitions suffice: 2 s
            measured.
        index_build: From an UpdateTable call that adds an index until it is ACTIVE, whatever the table holds: 8 to 17
            minutes measured.
        creation: From a CreateTable call until the table is ACTIVE, which CloudFormation waits for except in express
            mode: not documented; some seconds.
        permission: From a change of a role's policies until it is in effect, which CloudFormation waits for except in
            express mode: some seconds, at times a minute (IAM User Guide, "Changes that I make are not always
            immediately visible").
        heat_split_minutes: The whole minutes for which a partition must be at its limit before DynamoDB splits it: "in
            the order of minutes" (Amazon DynamoDB, USENIX ATC 2022, section 4.4).
    """

    metric_delay: int = 120
    phase: Phase = PHASES[0]
    scheduled_least: int = 3
    scheduled_most: int = 47
    gauge_age: int = 100
    autoscaling_update: int = 2
    direct_update: int = 2
    growth: int = 300
    to_on_demand: int = 150
    to_on_demand_again: int = 5
    to_provisioned: int = 113
    to_provisioned_again: int = 7
    warm_up: int = 400
    warm_up_again: int = 2
    index_build: int = 720
    creation: int = 8
    permission: int = 20
    heat_split_minutes: int = 10

    @classmethod
    def instant_updates(cls) -> Timing:
        """Return delays with which every change of a table applies at once; metrics and alarms keep their delays."""
        return cls(
            autoscaling_update=0,
            direct_update=0,
            growth=0,
            to_on_demand=0,
            to_on_demand_again=0,
            to_provisioned=0,
            to_provisioned_again=0,
            warm_up=0,
            warm_up_again=0,
            index_build=0,
        )

    def newest_minute(self, at: int) -> int:
        """Return the last minute whose datapoint is there by second *at*; both count from one time."""
        return (at - self.metric_delay) // 60 - 1

    def scheduled_lateness(self, name: str, at: int) -> int:
        """Return how late the scheduled action *name* of second *at* runs: evenly spread, and always the same."""
        spread = self.scheduled_most - self.scheduled_least + 1
        return self.scheduled_least + crc32(f"{name}@{at}".encode()) % spread

    @property
    def warming_pace(self) -> Pace:
        """The duration of a call that raises warm throughput."""
        return Pace(self.warm_up_again, self.warm_up)

    def pace(self, *, by_autoscaling: bool) -> Pace:
        """Return the duration of UpdateTable, called by Application Auto Scaling or by a client."""
        return Pace(self.autoscaling_update if by_autoscaling else self.direct_update, self.growth)
