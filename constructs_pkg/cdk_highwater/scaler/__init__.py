"""The throttle-aware scaler, and what an operator watches: alarms, metrics, the dashboard."""
