"""The table of processes: what the product is made of, and in which order it stops."""

from pathlib import Path

from deploy.local.place import open_run_folders, read_place
from deploy.local.processes import Plan, make_plan


def plan_in(folder: Path, *, web_processes: int = 1, **environ: str) -> Plan:
    ours = {"RAPPORT_DATA": str(folder), "RAPPORT_PORT": "8123", "RAPPORT_ENCODER_FOLDER": "/encoder", **environ}
    place = read_place(ours)
    open_run_folders(place)
    return make_plan(place, environ=ours, web_processes=web_processes)


def names_by_rank(plan: Plan) -> list[str]:
    return [process.name for process in sorted(plan.processes, key=lambda process: process.rank)]


def test_the_web_stops_first_and_redis_last(tmp_path: Path) -> None:
    assert names_by_rank(plan_in(tmp_path)) == ["web", "worker", "engine", "encoder", "redis"]


def test_a_redis_and_an_encoder_of_the_operators_own_replace_ours(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, REDIS_URL="redis://elsewhere/3", RAPPORT_ENCODER_URL="http://elsewhere:1")
    assert names_by_rank(plan) == ["web", "worker", "engine"]
    assert plan.environ["REDIS_URL"] == "redis://elsewhere/3"


def test_every_web_process_has_an_address_of_its_own(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, web_processes=3)
    assert names_by_rank(plan)[:3] == ["web", "web-2", "web-3"]
    assert plan.addresses[0] == "http://127.0.0.1:8123"
    assert len(set(plan.addresses)) == 3


def test_redis_password_stands_in_no_command_line(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    password = plan.environ["REDIS_URL"].partition("redis://:")[2].partition("@")[0]
    assert len(password) >= 24
    assert all(password not in part for process in plan.processes for part in process.command)
    assert (tmp_path / "run" / "redis.conf").stat().st_mode & 0o777 == 0o600


def test_sockets_run_without_the_thread_hop_and_without_deflate(tmp_path: Path) -> None:
    web = plan_in(tmp_path).processes[0]
    command = " ".join(web.command)
    for wanted in ("--ws websockets-sansio", "--loop uvloop", "--ws-per-message-deflate false", "--ws-max-size 131072"):
        assert wanted in command


def test_the_web_s_log_names_no_visitor_s_address(tmp_path: Path) -> None:
    """uvicorn writes one for each socket at its usual level, whatever is said of the access log."""
    command = " ".join(plan_in(tmp_path).processes[0].command)
    assert "--no-access-log --log-level warning" in command


def test_a_forwarded_address_is_believed_only_behind_a_named_proxy(tmp_path: Path) -> None:
    assert "--no-proxy-headers" in plan_in(tmp_path).processes[0].command
    behind = plan_in(tmp_path, FORWARDED_ALLOW_IPS="10.0.0.1")
    assert "--no-proxy-headers" not in behind.processes[0].command


def test_a_secret_with_a_dollar_reaches_the_processes_unchanged(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, RAPPORT_ENGINE_KEY="a$PATH$b ")
    assert plan.environ["RAPPORT_ENGINE_KEY"] == "a$PATH$b "
