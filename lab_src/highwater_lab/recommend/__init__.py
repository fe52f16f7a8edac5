"""Recommendations: the cheapest plan that keeps throttling within a limit under known traffic."""

from highwater_lab.recommend.search import Candidate, Recommendation, recommend

__all__ = ["Candidate", "Recommendation", "recommend"]
