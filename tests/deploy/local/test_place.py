"""Settings of the start command are read once, and what cannot be used is said."""

from pathlib import Path

import pytest

from deploy.env import cache_folder
from deploy.local.place import MAX_SOCKET_FOLDER_BYTES, SettingInvalid, open_run_folders, read_place


def test_defaults_are_the_checkout_and_the_users_cache(tmp_path: Path) -> None:
    place = read_place({"HOME": str(tmp_path)})
    assert place.data == place.root / "var"
    assert place.cache == tmp_path / ".cache" / "rapport"
    assert place.address == "http://127.0.0.1:8000"


def test_the_start_command_and_the_processes_agree_on_the_cache(tmp_path: Path) -> None:
    for environ in ({"RAPPORT_CACHE": str(tmp_path)}, {"XDG_CACHE_HOME": str(tmp_path)}):
        assert read_place(environ).cache == cache_folder(environ)


@pytest.mark.parametrize("port", ["0", "65536", "eighty", "-1", "8000 ", "²"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    with pytest.raises(SettingInvalid, match="RAPPORT_PORT"):
        read_place({"RAPPORT_PORT": port})


def test_listening_on_every_address_is_shown_as_one_that_opens() -> None:
    assert read_place({"RAPPORT_HOST": "0.0.0.0", "RAPPORT_PORT": "81"}).address == "http://127.0.0.1:81"


def test_a_long_data_path_gets_a_short_private_socket_folder(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * MAX_SOCKET_FOLDER_BYTES)
    place = read_place({"RAPPORT_DATA": str(deep)})
    open_run_folders(place)
    try:
        assert len(place.circus_endpoint.removeprefix("ipc://")) <= 107
        assert place.sockets.stat().st_mode & 0o777 == 0o700
    finally:
        place.sockets.rmdir()
