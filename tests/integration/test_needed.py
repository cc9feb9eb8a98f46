# SPDX-License-Identifier: Apache-2.0
"""Libraries that a program is linked with: armed under `run` before it begins."""

import re
import shutil
import subprocess

from test_run import check_user_of_library, user_of_library  # noqa: F401


def test_library_that_the_cache_of_another_root_knows(waffle, user_of_library, tmp_path):  # noqa: F811
    """It lies in a folder that nothing else names."""
    library, user = user_of_library
    needed = subprocess.run(["ldd", user], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", needed):
        place = tmp_path / ("odd/" + library.name if path == str(library) else path[1:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.conf").write_text("/odd\n", encoding="ascii")
    subprocess.run(["ldconfig", "-r", tmp_path], check=True)
    shutil.copy(user, tmp_path)
    check_user_of_library(waffle.run("chroot", tmp_path, f"/{user.name}").rows())
