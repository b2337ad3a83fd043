"""Parse times with offsets and write them again."""

import sys


def prepare(repository):
    sys.path.insert(0, repository + "/src")
    import isodate

    return isodate


def answer(isodate, given):
    if "duration" in given:
        return isodate.duration_isoformat(isodate.parse_duration(given["duration"]))
    if "date" in given:
        return isodate.parse_date(given["date"]).isoformat()
    parsed = isodate.parse_datetime(given["datetime"]) if "datetime" in given else isodate.parse_time(given["time"])
    offset = parsed.utcoffset()
    answer = {"read": parsed.isoformat(), "offset": None if offset is None else int(offset.total_seconds())}
    if "datetime" in given and offset is not None:
        answer["utc"] = parsed.astimezone(isodate.UTC).isoformat()
        answer["written"] = isodate.datetime_isoformat(parsed)
    return answer
