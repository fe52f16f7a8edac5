"""Recommendations: the cheapest plan that keeps throttling within a limit under known traffic."""

from highwater_lab.recommend.advice import Recommendation, Rule
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.recommend.search import recommend

__all__ = ["Candidate", "Recommendation", "Rule", "recommend"]
