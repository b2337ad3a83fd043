"""Order and inspect versions through the public interface of the package."""

import sys


def prepare(repository):
    sys.path.insert(0, repository + "/src")
    import semver

    return semver


def answer(semver, given):
    version = semver.Version.parse
    if "compare" in given:
        left, right = given["compare"]
        return [version(left).compare(right), version(left) < version(right), version(left) == version(right)]
    if "sort" in given:
        return [str(item) for item in sorted(map(version, given["sort"]))]
    if "max" in given:
        return str(max(map(version, given["max"])))
    if "match" in given:
        return version(given["match"][0]).match(given["match"][1])
    if "bump" in given:
        return str(getattr(version(given["bump"][0]), given["bump"][1])())
    return version(given["parse"]).to_dict()
