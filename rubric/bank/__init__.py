"""Criteria to choose from, tagged with the states they fit; README.md says how they are written.

A generator that chooses instead of writing calls `load_bank`. Pure Python; the files beside this one are the content.
"""

from rubric.bank.bank import Bank, load_bank, parse_bank
from rubric.bank.criterion import BankCriterion, Kind, Setting
from rubric.bank.cue import safe_cue

__all__ = ["Bank", "BankCriterion", "Kind", "Setting", "load_bank", "parse_bank", "safe_cue"]
