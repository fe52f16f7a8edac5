"""The delays of the AWS services: all those that the simulation and the local cloud model, in one place."""

from __future__ import annotations

from dataclasses import dataclass


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
class Timing:
    """Delays, in seconds unless the name says otherwise.

    A default with a named source is measured or documented. The others are chosen so that the simulation reproduces the
    figures of "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (docs/figures.md).

    Attributes:
        metric_delay: From the end of a minute to its datapoint in CloudWatch: "2 minutes or more" (the same post).
        alarm_latency: From the datapoint that breaches an alarm to the alarm's actions.
        autoscaling_reaction: From an alarm's action to Application Auto Scaling's UpdateTable call. An alarm's action
            is repeated every minute, and a change by hand against it was undone after 82 s: at least 22 s later.
        scheduled_lateness: From a scheduled action's time to its run: 8.5 and 14.6 s in the samples of the Application
            Auto Scaling User Guide.
        autoscaling_update: From an UpdateTable call by Application Auto Scaling to the new capacity, if the existing
            partitions suffice: 1.0 to 4.4 s measured after a floor was raised. The activity lasts 30 to 37 s, in that
            measurement as in the same samples: Application Auto Scaling notices later that the change is complete.
        direct_update: From an UpdateTable call by a client to the new capacity, if the existing partitions suffice: 1.0
            to 2.3 s measured.
        growth: From an UpdateTable call to the new capacity, if DynamoDB has to add partitions: not documented; a
            warm-up was measured at 272 to 514 s.
        to_on_demand: A table's first switch from provisioned capacity to on-demand: 129 to 172 s measured.
        to_on_demand_again: A later switch of the same table to on-demand: 4.1 to 5.1 s measured.
        to_provisioned: A switch from on-demand to provisioned capacity: 55 to 98 s measured.
        to_provisioned_with_indexes: The same switch for a table with an index: 83 to 113 s measured.
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

    metric_delay: int = 150
    alarm_latency: int = 10
    autoscaling_reaction: int = 30
    scheduled_lateness: int = 10
    autoscaling_update: int = 5
    direct_update: int = 2
    growth: int = 300
    to_on_demand: int = 150
    to_on_demand_again: int = 5
    to_provisioned: int = 77
    to_provisioned_with_indexes: int = 98
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
            to_provisioned_with_indexes=0,
            warm_up=0,
            warm_up_again=0,
            index_build=0,
        )

    def newest_minute(self, at: int) -> int:
        """Return the last minute whose datapoint auto scaling has acted on by second *at*; both count from one time."""
        return (at - self.metric_delay - self.alarm_latency - self.autoscaling_reaction) // 60 - 1

    @property
    def alarm_second(self) -> int:
        """The second of each minute in which alarms act on a new datapoint."""
        return (self.metric_delay + self.alarm_latency) % 60

    @property
    def autoscaling_second(self) -> int:
        """The second of each minute in which auto scaling acts on a new datapoint."""
        return (self.alarm_second + self.autoscaling_reaction) % 60

    @property
    def warming_pace(self) -> Pace:
        """The duration of a call that raises warm throughput."""
        return Pace(self.warm_up_again, self.warm_up)

    def pace(self, *, by_autoscaling: bool) -> Pace:
        """Return the duration of UpdateTable, called by Application Auto Scaling or by a client."""
        return Pace(self.autoscaling_update if by_autoscaling else self.direct_update, self.growth)
