# SPDX-License-Identifier: Apache-2.0
"""The sites that the sources of this folder promise in comments; their form is in inline.h."""

import collections
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

Site = collections.namedtuple("Site", "kind name category file func keys line slack droppable")

_COMMENT = re.compile(r"/\* (IN|CATEGORY|SITE)(\??)(?:\+(\d+))? ?(.*?) \*/|/\* CATEGORY \*/")
_STRING = r'"(?:[^"\\]|\\.)*"'
_SITE = re.compile(rf"(\w+) ({_STRING})((?: {_STRING}:\w+)*)(?: IN (\S+))?")
_KEY = re.compile(rf"({_STRING}):(\w+)")


def _site(path, number, match, func, category):
    _, droppable, slack, text = match.groups()
    parts = _SITE.fullmatch(text)
    assert parts, f"{path}:{number}: {text}"
    kind, name, keys, own_func = parts.groups()
    keys = tuple((json.loads(key, strict=False), form) for key, form in _KEY.findall(keys))
    return Site(kind, json.loads(name), category, str(path.relative_to(ROOT)), own_func or func,
                keys, number, int(slack or 0), bool(droppable))


def read(*names):
    """The sites of these files of this folder."""
    sites = []
    for path in [HERE / name for name in names]:
        func, category = None, ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in _COMMENT.finditer(line):
                if match[1] == "IN":
                    func = match[4]
                elif match[1] == "SITE":
                    sites.append(_site(path, number, match, func, category))
                else:
                    category = match[4] or ""
    return list(dict.fromkeys(sites))


def differences(expected, listed, may_drop=False):
    """What `waffle-bpf list --json` read, against what was expected: lines, none if all is well."""
    left = collections.defaultdict(list)
    wrong = []
    for site in listed:
        keys = tuple((key["name"], key["type"]) for key in site["keys"])
        left[(site["kind"], site["name"], site["category"], site["file"], site["func"], keys)].append(
            site["line"])
    for site in expected:
        lines = left[site[:6]]
        found = [line for line in lines if site.line <= line <= site.line + site.slack]
        if found:
            lines.remove(found[0])
        elif not (site.droppable and may_drop):
            wrong.append(f"missing: {site}")
    wrong += [f"not expected: {site} on {lines}" for site, lines in left.items() if lines]
    return wrong
