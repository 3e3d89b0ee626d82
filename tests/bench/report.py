"""report.py - lines of figures with their limits, for the programs of this folder."""


class Report:
    """Prints each figure; `missed` counts those that are not below their limit."""

    def __init__(self):
        self.missed = 0

    def line(self, what, value, unit, limit=None, remark=""):
        verdict = "" if limit is None else f"  wanted < {limit:g} {unit}: {'good' if value < limit else 'MISSED'}"
        self.missed += limit is not None and value >= limit
        print(f"{what:<62} {value:9.2f} {unit}{verdict}{'  ' + remark if remark else ''}", flush=True)
