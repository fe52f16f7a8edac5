"""Advice in words: the plan that is advised, compared with what is declared, and what to know of it."""

from __future__ import annotations

from highwater_lab.recommend import Candidate, Recommendation, Rule
from highwater_lab.report.app import share, usd
from highwater_lab.simulation.run import percent_text


def figures(candidate: Candidate) -> str:
    """Return the cost of a month, and the share of throttled units, in the days before and after the cut apart."""
    text = f"{usd(candidate.cost_per_month)} USD a month, {share(candidate.throttled_percent)} % throttled"
    if candidate.parts is None or max(candidate.parts) == 0:
        return text
    before, after = (share(each) for each in candidate.parts)
    return f"{text} ({before} % in the days that it was chosen on, {after} % in those after)"


def change_text(found: Recommendation, rule: Rule) -> str:
    """Return what to change, with the difference in cost and the reason for a higher one, or why nothing is to."""
    present, advised, best = found.present, found.advised(rule), found.best
    if present is None:
        return ""
    gap = present.cost_per_month - best.cost_per_month
    if advised is present:
        keep = "stays" if found.declared is not None else "choose on demand"
        if found.unknown and found.declared is not None and (best.plan is None) != (present.plan is None):
            return keep
        if present.keeps(rule.limit_percent):
            is_better = found.is_within_limit and best is not present and gap > 0
            return f"{keep}, as the best costs {usd(gap)} less ({best.summary})" if is_better else keep
        if not found.is_within_limit:
            return f"{keep}: no plan keeps {rule.limit_percent:g} %, and none is worth {priced(found, rule)}"
        kept = f"{best.summary} keeps {rule.limit_percent:g} % for {usd(-gap)} more"
        return f"{keep}: {kept}, which is more than {priced(found, rule)}"
    gain = present.cost_per_month - advised.cost_per_month
    text = f"{advised.summary}: {figures(advised)}, {usd(abs(gain))} {'less' if gain >= 0 else 'more'}"
    if advised.keeps(rule.limit_percent):
        return f"{text}, to keep {rule.limit_percent:g} %" if gain < 0 else text
    if rule.is_stated:
        return f"{text}; no plan keeps {rule.limit_percent:g} %, this one throttles least"
    dear = f"{best.summary} keeps {rule.limit_percent:g} % for {usd(best.cost_per_month)}"
    if not found.is_within_limit:
        dear = f"no plan keeps {rule.limit_percent:g} %"
    return f"{text}, the least with {priced(found, rule)}; {dear}"


def priced(found: Recommendation, rule: Rule) -> str:
    """Return the price of throttled units in words."""
    price = {each: each_usd * 1e6 for each, each_usd in found.throttle_usd(rule).items()}
    texts = [f"{usd(price[each])} USD for a million throttled {each}s" for each in price]
    return " and ".join(reversed(texts))


def advice_notes(found: Recommendation, rule: Rule) -> list[str]:
    """Return what to know of the plan that is advised, a sentence without a period each."""
    advised, notes = found.advised(rule), []
    known = " and ".join(f"{each}s" for each in found.request_usd if each not in found.unknown)
    missing = " and ".join(f"{each}s" for each in found.unknown)
    if found.unknown and found.declared is None:
        notes.append(f"the plan is for {known} alone: {missing} are not in the traffic")
    elif found.unknown and found.on_demand is not None:
        notes.append(
            f"{missing} are not in the traffic, so the billing mode is not advised; on demand, {known} alone: "
            f"{usd(found.on_demand.cost_per_month)}"
        )
    if advised is not found.best or advised is found.declared:
        return notes
    if found.broken is not None and found.broken.parts is not None and advised.parts is not None:
        notes.append(
            f"chosen with the last third of the days too: {found.broken.summary} is cheaper, kept "
            f"{rule.limit_percent:g} % before, and throttles {percent_text(found.broken.parts[1])} % there"
        )
    if found.ceiling_usd:
        notes.append(f"a month at its ceilings would cost {usd(found.ceiling_usd)}")
    if advised.once_usd >= 0.005:
        notes.append(f"its high-water marks cost {advised.once_usd:,.2f} once")
    return notes + warnings_of(found, rule)


def warnings_of(found: Recommendation, rule: Rule) -> list[str]:
    """Return the reasons why the plan that is advised may throttle more in days that were not seen."""
    advised, warnings = found.advised(rule), []
    if found.rise is not None and advised.plan is not None:
        warnings.append(
            f"requests rose {found.rise.times:.0f} times within five minutes ({found.rise.at:%a %Y-%m-%d %H:%M} UTC), "
            "which auto scaling cannot follow: in days that were not seen it may throttle more"
        )
    if not advised.keeps(rule.limit_percent / 2):
        warnings.append("it uses more than half of the limit, and may break it in days that were not seen")
    return warnings
