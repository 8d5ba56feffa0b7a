"""check_sarif.py FILE N: is FILE a SARIF 2.1.0 log with at least N results? The rules are those of the published schema
for the parts that onx writes: required properties, types, enumerations, and references that have to resolve."""
import json
import re
import sys

log = json.load(open(sys.argv[1]))
problems = []


def need(ok, what):
    if not ok:
        problems.append(what)


def obj(value, allowed, required, where):
    need(isinstance(value, dict), where + " is no object")
    if not isinstance(value, dict):
        return {}
    need(set(value) <= set(allowed), "%s has unknown properties %s" % (where, sorted(set(value) - set(allowed))))
    need(set(required) <= set(value), "%s lacks %s" % (where, sorted(set(required) - set(value))))
    return value


def text(value, where):
    m = obj(value, ["text", "markdown", "id", "arguments", "properties"], ["text"], where)
    need(isinstance(m.get("text"), str) and m.get("text"), where + " has no text")


LEVELS = ["none", "note", "warning", "error"]
obj(log, ["$schema", "version", "runs", "inlineExternalProperties", "properties"], ["version", "runs"], "log")
need(log.get("version") == "2.1.0", "version is not 2.1.0")
need(isinstance(log.get("runs"), list) and len(log["runs"]) == 1, "one run")
run = obj(log["runs"][0], ["tool", "invocations", "results", "columnKind", "artifacts", "properties"], ["tool", "results"], "run")
need(run.get("columnKind") in ("utf16CodeUnits", "unicodeCodePoints"), "columnKind")
driver = obj(obj(run["tool"], ["driver", "extensions", "properties"], ["driver"], "tool")["driver"],
             ["name", "version", "semanticVersion", "informationUri", "rules", "properties"], ["name"], "driver")
rules = driver.get("rules", [])
ids = []
for r in rules:
    obj(r, ["id", "name", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration", "properties"], ["id"], "rule")
    ids.append(r["id"])
    for k in ("shortDescription", "fullDescription", "help"):
        text(r[k], "rule." + k)
    c = obj(r["defaultConfiguration"], ["enabled", "level", "rank", "parameters", "properties"], [], "defaultConfiguration")
    need(c.get("level") in LEVELS and isinstance(c.get("enabled"), bool), "defaultConfiguration of " + r["id"])
need(len(set(ids)) == len(ids), "rule ids repeat")
for i in run.get("invocations", []):
    obj(i, ["executionSuccessful", "exitCode", "commandLine", "properties"], ["executionSuccessful"], "invocation")
    need(isinstance(i["executionSuccessful"], bool), "executionSuccessful")
for r in run["results"]:
    obj(r, ["ruleId", "ruleIndex", "level", "kind", "message", "locations", "properties"], ["message"], "result")
    text(r["message"], "message")
    need(r.get("level") in LEVELS, "level")
    if "ruleIndex" in r:
        need(0 <= r["ruleIndex"] < len(rules) and ids[r["ruleIndex"]] == r.get("ruleId"), "ruleIndex does not lead to ruleId")
    for at in r["locations"]:
        obj(at, ["id", "physicalLocation", "logicalLocations", "message", "properties"], [], "location")
        p = obj(at["physicalLocation"], ["artifactLocation", "region", "contextRegion", "properties"], [], "physicalLocation")
        a = obj(p["artifactLocation"], ["uri", "uriBaseId", "index", "properties"], [], "artifactLocation")
        need(re.fullmatch(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+", a["uri"]) is not None, "uri " + a["uri"])
        region = obj(p.get("region", {}), ["byteOffset", "byteLength", "startLine", "startColumn", "endLine", "endColumn"], [], "region")
        for k, least in (("byteOffset", 0), ("byteLength", 0), ("startLine", 1), ("startColumn", 1)):
            need(k not in region or (isinstance(region[k], int) and region[k] >= least), k)
        for where in at.get("logicalLocations", []):
            obj(where, ["name", "index", "fullyQualifiedName", "decoratedName", "parentIndex", "kind", "properties"], [], "logicalLocation")
            need(isinstance(where.get("fullyQualifiedName"), str), "fullyQualifiedName")
need(len(run["results"]) >= int(sys.argv[2]), "%d results" % len(run["results"]))
for p in problems:
    print(p)
sys.exit(1 if problems else 0)
