"""Recommendations: the cheapest plan that keeps throttles under a limit, for traffic that is known."""

from highwater_lab.recommend.candidates import Candidate
from highwater_lab.recommend.search import Recommendation, recommend

__all__ = ["Candidate", "Recommendation", "recommend"]
