import { expect, test } from "vitest";
import type { JsonObject } from "../../internal/json.ts";
import { diffJson, applyPatch } from "./json-patch.ts";

const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

test.for<[original: string, translated: string]>([
  ['{"a":1,"b":[{"c":2},3]}', '{"a":1}'],
  ['{"a":{"x":1,"y":2}}', '{"a":{"x":1,"z":3}}'],
  ['{"__proto__":{"a":1},"constructor":"x"}', "{}"],
  ['{"in":{"__proto__":"text","toString":null}}', '{"in":{"said":true}}'],
  ['{"__proto__":{"a":1,"b":2}}', '{"__proto__":{"a":1}}'],
])("a patch restores %s from its translation", ([original, translated]) => {
  const [to, from] = [JSON.parse(original) as JsonObject, JSON.parse(translated) as JsonObject];
  const rest = diffJson(to, from);
  expect(JSON.parse(JSON.stringify(applyPatch(from, rest === undefined ? rest : stored(rest))))).toEqual(to);
  expect(Object.keys(applyPatch(from, rest)).sort()).toEqual(Object.keys(to).sort());
});
