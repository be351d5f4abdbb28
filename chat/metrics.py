"""Every number that Prometheus may read, defined once; `chat.health` serves them, the verbs and doors count.

Labels are closed sets of words (endings, levels, codes), never ids and never what people wrote. Where several
processes count (web, worker), PROMETHEUS_MULTIPROC_DIR names the folder that they share.
"""

from prometheus_client import Counter, Gauge, Histogram

REPLIES = Counter("rapport_replies_total", "Model replies by how they ended (the status of the message).", ["ending"])
RUBRICS = Counter("rapport_rubrics_total", "Rubrics by outcome: valid, repaired or fallback.", ["outcome"])
SCORES = Counter("rapport_scores_total", "Scores by outcome: full, partial or unscored.", ["outcome"])
UNFOUND_QUOTES = Counter("rapport_unfound_quotes_total", "Levels whose quote stands nowhere in the reply.")
UNGRADED_LEVELS = Counter("rapport_ungraded_levels_total", "Criteria that got no level, by reason.", ["reason"])
GRADINGS_FAILED = Counter(
    "rapport_gradings_failed_total", "Gradings that ended in an error and are tried again, by its kind.", ["kind"]
)
SAFETY = Counter("rapport_safety_total", "Verdicts of the screens by direction and level.", ["direction", "level"])
ERRORS = Counter("rapport_errors_total", "Error events and error answers by code.", ["code"])
ALERTS = Counter("rapport_alerts_total", "Alerts that were raised for staff, by kind.", ["kind"])
SOCKETS = Gauge("rapport_sockets", "Sockets that are open now.", ["door"], multiprocess_mode="livesum")
FIRST_TOKEN = Histogram(
    "rapport_first_token_seconds",
    "Seconds from the claim of a reply to the engine's first token.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
)
JUDGE_SECONDS = Histogram(
    "rapport_judge_seconds",
    "Seconds that a judge took for one reply, by what judges.",
    ["implementation"],
    buckets=(0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0),
)
