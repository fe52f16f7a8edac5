"""Jobs of many workers: functions that a state machine calls until a scan or a load is done."""
