# SPDX-License-Identifier: Apache-2.0
"""`sudo waffle-bpf run` is for tracing, not for running the command as root."""

import os
import pwd
import resource
import stat
import subprocess

import pytest

USER = "waffle-test"


@pytest.fixture(name="user", scope="module")
def user_with_groups():
    """A user of its own, in two groups besides its first."""
    for group in (f"{USER}-a", f"{USER}-b"):
        subprocess.run(["groupadd", "-f", group], check=True)
    subprocess.run(["userdel", USER], check=False, capture_output=True)
    subprocess.run(
        ["useradd", "-M", "-d", "/nonexistent/home", "-s", "/bin/dash",
         "-G", f"{USER}-a,{USER}-b", USER], check=True,
    )  # fmt: skip
    yield pwd.getpwnam(USER)
    subprocess.run(["userdel", USER], check=False, capture_output=True)
    for group in (f"{USER}-a", f"{USER}-b"):
        subprocess.run(["groupdel", group], check=False, capture_output=True)


@pytest.fixture(name="identity")
def identity_program(built, public):
    return public(built("identity.c"))


def said(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def sudo(user, **more):
    return dict(os.environ, SUDO_UID=str(user.pw_uid), SUDO_GID=str(user.pw_gid), HOME="/root",
                XDG_RUNTIME_DIR="/run/user/0", KEPT="yes", **more)  # fmt: skip


def groups_of(name):
    """What id(1) says."""
    out = subprocess.run(["id", "-G", name], capture_output=True, text=True, check=True).stdout
    return sorted(int(x) for x in out.split())


def check_is(user, says):
    assert says["uids"] == " ".join([str(user.pw_uid)] * 3)
    assert says["gids"] == " ".join([str(user.pw_gid)] * 3)
    assert sorted(int(x) for x in says["groups"].split()) == groups_of(user.pw_name)
    assert says["USER"] == says["LOGNAME"] == user.pw_name
    assert (says["HOME"], says["SHELL"]) == (user.pw_dir, user.pw_shell)


def test_command_is_run_as_who_called_sudo(waffle, identity, user):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    result = waffle.run(identity, env=sudo(user), cwd="/var")
    says = said(result.result.stdout)
    check_is(user, says)
    assert says["XDG_RUNTIME_DIR"] == "(unset)"
    assert (says["SUDO_UID"], says["KEPT"], says["cwd"]) == ("(unset)", "yes", "/var")
    assert says["files"] == f"{limits[0]} {limits[1]}"
    assert int(says["sid"]) == os.getsid(0)
    # It was traced, from its begin.
    [span] = [row for row in result.rows("span") if row["name"] == "identity"]
    assert span["end_ns"] > span["start_ns"]
    assert stat.S_IMODE(result.path.stat().st_mode) == 0o600
    assert result.path.stat().st_uid == user.pw_uid


def test_limits_of_the_caller_are_kept(waffle, identity, user):
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (4096, 4096))

    says = said(waffle.run(identity, env=sudo(user), preexec_fn=limit).result.stdout)
    assert says["core"] == "4096"


def test_user_by_name_and_by_number(waffle, identity, user):
    for name in (USER, str(user.pw_uid)):
        says = said(waffle.run(identity, options=("--user", name)).result.stdout)
        check_is(user, says)


def test_user_root_keeps_root(waffle, identity, user):
    result = waffle.call("run", "--no-report", "-o", waffle.path(), "--user", "root", "--",
                         identity, env=sudo(user))  # fmt: skip
    assert said(result.stdout)["uids"] == "0 0 0"
    assert "runs as root" not in result.stderr


def test_it_is_said_when_nobody_is_known_but_root(waffle, identity):
    result = waffle.ok("run", "--no-report", "-o", waffle.path(), "--", identity)
    assert said(result.stdout)["uids"] == "0 0 0"
    assert "the command runs as root; --user NAME" in result.stderr


def test_children_are_traced_and_the_users_too(waffle, identity, user):
    """All that the tracer does for the processes of a tree works with another user's."""
    capture = waffle.run("sh", "-c", f"{identity}; {identity} & wait", env=sudo(user))
    blocks = capture.result.stdout.split("uids=")[1:]
    assert len(blocks) == 2
    assert all(block.startswith(f"{user.pw_uid} {user.pw_uid} ") for block in blocks)
    assert len([row for row in capture.rows("span") if row["name"] == "identity"]) == 2


def test_file_that_only_root_may_execute_is_126(waffle, user, public):
    mine = public("/bin/true")
    mine.chmod(0o700)
    result = waffle.call("run", "-q", "-o", waffle.path(), "--", mine, env=sudo(user))
    assert result.returncode == 126 and "Permission denied" in result.stderr


def test_users_that_are_not_there_are_errors(waffle, identity):
    for name in ("no-such-user", "4294967295", "4000000000", "", "-1"):
        waffle.fails(2, "run", "--user", name, "-o", "x", "--", identity,
                     says="there is no such user")  # fmt: skip
    environment = dict(os.environ, SUDO_UID="4000000000")
    waffle.fails(2, "run", "-o", "x", "--", identity, env=environment,
                 says="who called sudo.*4000000000.*no such user.*--user")  # fmt: skip
    assert not (waffle.folder / "x").exists()


@pytest.mark.parametrize("number", ["-1", "1000 ", "0x3e8", "4294967295", "root"])
def test_a_caller_whose_number_makes_no_sense_is_not_root(waffle, identity, number):
    environment = {**os.environ, "SUDO_UID": number}
    waffle.fails(2, "run", "--", identity, says=f"SUDO_UID is '{number}'", env=environment)
    waffle.ok("run", "-q", "--no-report", "--user", "root", "--", identity, env=environment)


def test_other_users_need_root(waffle, identity, user):
    """With the capabilities to trace, but not to become another user."""
    capabilities = "+bpf,+perfmon,+sys_ptrace,+dac_read_search,+kill"
    result = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps", capabilities,
         "--ambient-caps", capabilities, waffle.program, "run", "-q", "-o", "/tmp/waffle-no-user",
         "--user", USER, "--", identity],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 126, result.stderr
    assert f"it can't run as user {USER}: Operation not permitted" in result.stderr
    assert not os.path.exists("/tmp/waffle-no-user")
