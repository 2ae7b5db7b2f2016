import { describe, expect, test } from "vitest";
import { header, timeAt } from "../../../test/sample-log.ts";
import { checkHeader, createHeader, FORMAT_VERSION, isTimestamp, rootIdOf, type SessionHeader } from "./header.ts";
import { HEADER_BYTES_MAX } from "../limits.ts";

describe("createHeader", () => {
  test("fills in missing fields", () => {
    const before = new Date().toISOString();
    const made = createHeader();
    expect(made).toEqual({
      type: "session",
      version: FORMAT_VERSION,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      createdAt: expect.any(String),
      userId: null,
      cwd: null,
      lineage: { parents: [], operator: "implicit", kind: "unknown", extras: [] },
      forkedFrom: null,
      sandbox: null,
      metadata: {},
    });
    expect(made.createdAt >= before).toBe(true);
    expect(createHeader().id).not.toBe(made.id);
  });

  test("keeps the given fields", () => {
    const init: Omit<SessionHeader, "type" | "version"> = {
      id: "support-4711",
      createdAt: timeAt(7),
      userId: "__proto__",
      cwd: "/home/me",
      lineage: { parents: ["a", "b"], operator: "merge", kind: "op_merge", extras: [["note", { deep: [1] }]] },
      forkedFrom: { sessionId: "a", entryId: null, version: 0, branchName: "try two" },
      sandbox: { backend: "local", spec: { workingDir: "/tmp" }, handleId: null },
      metadata: { ticket: 4711 },
    };
    expect(createHeader(init)).toEqual({ type: "session", version: FORMAT_VERSION, ...init });
  });

  test("is not affected by later changes to the caller's metadata, nor by its readers", () => {
    const metadata = { tags: ["a"] };
    const made = createHeader({ metadata });
    metadata.tags.push("b");
    expect(made.metadata).toEqual({ tags: ["a"] });
    expect(() => (made.metadata.tags as string[]).push("c")).toThrow(TypeError);
    expect(() => Object.assign(made, { userId: "other" })).toThrow(TypeError);
  });

  test("refuses metadata with the key __proto__", () => {
    const metadata = JSON.parse('{"__proto__":{"admin":true}}');
    expect(() => createHeader({ metadata })).toThrow(expect.objectContaining({ code: "INVALID_VALUE" }));
    expect(() => createHeader({ metadata })).toThrow("header.metadata.__proto__");
  });

  test("refuses metadata that JSON cannot carry", () => {
    const metadata = { at: new Date(0) } as unknown as SessionHeader["metadata"];
    expect(() => createHeader({ metadata })).toThrow(expect.objectContaining({ code: "INVALID_VALUE" }));
  });

  test("accepts as many bytes as the limit, counted in UTF-8", () => {
    const spare = HEADER_BYTES_MAX - JSON.stringify(header({ metadata: { text: "" } })).length;
    const of = (text: string) => () => header({ metadata: { text } });
    expect(of("x".repeat(spare))).not.toThrow();
    expect(of("x".repeat(spare + 1))).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
    expect(of("é".repeat(Math.floor(spare / 2)))).not.toThrow();
    expect(of("é".repeat(Math.floor(spare / 2) + 1))).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
  });
});

describe("checkHeader", () => {
  const lineage = { parents: [], operator: "implicit", kind: "unknown", extras: [] };
  const forkedFrom = { sessionId: "a", entryId: "e", version: 1 };
  const sandbox = { backend: "local", spec: null, handleId: null };
  const bad: [string, Record<string, unknown>, string, string][] = [
    ["another type", { type: "message" }, "INVALID_HEADER", "type"],
    ["an older version", { version: 0 }, "INVALID_HEADER", "version"],
    ["a version that is a text", { version: "1" }, "INVALID_HEADER", "version"],
    ["no version", { version: undefined }, "INVALID_HEADER", "version"],
    ["no id", { id: undefined }, "INVALID_ID", "session id"],
    ["a hostile id", { id: "../x" }, "INVALID_ID", "session id"],
    ["a time that is a number", { createdAt: 5 }, "INVALID_HEADER", "createdAt"],
    ["a time without milliseconds", { createdAt: "2024-01-01T00:00:00Z" }, "INVALID_HEADER", "createdAt"],
    ["an empty user id", { userId: "" }, "INVALID_ID", "user id"],
    ["a missing user id", { userId: undefined }, "INVALID_ID", "user id"],
    ["an empty cwd", { cwd: "" }, "INVALID_HEADER", "working directory"],
    ["a missing cwd", { cwd: undefined }, "INVALID_HEADER", "working directory"],
    ["no lineage", { lineage: undefined }, "INVALID_HEADER", "lineage"],
    ["a lineage that is a list", { lineage: [] }, "INVALID_HEADER", "lineage"],
    ["parents that are no list", { lineage: { ...lineage, parents: "a" } }, "INVALID_HEADER", "lineage.parents"],
    ["a hostile parent", { lineage: { ...lineage, parents: ["../x"] } }, "INVALID_ID", "session id"],
    ["no operator", { lineage: { ...lineage, operator: undefined } }, "INVALID_HEADER", "lineage.operator"],
    ["an unknown kind", { lineage: { ...lineage, kind: "op_magic" } }, "INVALID_HEADER", "lineage.kind"],
    ["extras that are an object", { lineage: { ...lineage, extras: {} } }, "INVALID_HEADER", "lineage.extras"],
    ["extras that are no pairs", { lineage: { ...lineage, extras: [["a"]] } }, "INVALID_HEADER", "lineage.extras"],
    [
      "an extra whose key is no text",
      { lineage: { ...lineage, extras: [[1, 2]] } },
      "INVALID_HEADER",
      "lineage.extras",
    ],
    ["no fork point", { forkedFrom: undefined }, "INVALID_HEADER", "forkedFrom"],
    ["a hostile source", { forkedFrom: { ...forkedFrom, sessionId: "/" } }, "INVALID_ID", "session id"],
    ["a fork at no entry", { forkedFrom: { ...forkedFrom, entryId: undefined } }, "INVALID_ID", "entry id"],
    [
      "a fork at half a version",
      { forkedFrom: { ...forkedFrom, version: 0.5 } },
      "INVALID_HEADER",
      "forkedFrom.version",
    ],
    ["a fork before the start", { forkedFrom: { ...forkedFrom, version: -1 } }, "INVALID_HEADER", "forkedFrom.version"],
    [
      "a branch name that is no text",
      { forkedFrom: { ...forkedFrom, branchName: 1 } },
      "INVALID_HEADER",
      "forkedFrom.branchName",
    ],
    ["no sandbox", { sandbox: undefined }, "INVALID_HEADER", "sandbox"],
    ["a sandbox that is a text", { sandbox: "local" }, "INVALID_HEADER", "sandbox"],
    [
      "a sandbox without a backend",
      { sandbox: { ...sandbox, backend: undefined } },
      "INVALID_HEADER",
      "sandbox.backend",
    ],
    ["a sandbox without a spec", { sandbox: { ...sandbox, spec: undefined } }, "INVALID_HEADER", "sandbox.spec"],
    ["a handle that is a number", { sandbox: { ...sandbox, handleId: 5 } }, "INVALID_HEADER", "sandbox.handleId"],
    ["metadata that is a list", { metadata: [] }, "INVALID_HEADER", "metadata"],
    ["no metadata", { metadata: undefined }, "INVALID_HEADER", "metadata"],
  ];

  test.for(bad)("refuses a header with %s", ([, change, code, part]) => {
    const broken = { ...header({ forkedFrom, sandbox }), ...change };
    expect(() => checkHeader(broken)).toThrow(expect.objectContaining({ code }));
    expect(() => checkHeader(broken)).toThrow(part);
  });

  test.for([null, undefined, "header", 1, []])("refuses %j, which is no header at all", (value) => {
    expect(() => checkHeader(value)).toThrow(expect.objectContaining({ code: "INVALID_HEADER" }));
  });

  test("refuses a later version with any content, and the message says what to do", () => {
    const later = { type: "session", version: FORMAT_VERSION + 1, id: "s", shape: "new" };
    expect(() => checkHeader(later)).toThrow(expect.objectContaining({ code: "UNSUPPORTED_VERSION" }));
    expect(() => checkHeader(later)).toThrow(
      `Session "s" has format version ${FORMAT_VERSION + 1}; this version of skein reads up to ${FORMAT_VERSION}, so update skein`,
    );
    expect(() => checkHeader({ ...later, id: undefined })).toThrow("A session without an id has format version");
  });

  test("keeps fields that it does not know", () => {
    expect(checkHeader({ ...header(), added: "later" })).toMatchObject({ added: "later" });
  });
});

describe("the root of a session", () => {
  const forkedFrom = { sessionId: "source", entryId: null, version: 0 };

  test.each([
    [{}, "s"],
    [{ forkedFrom }, "source"],
    [{ forkedFrom, rootId: "root" }, "root"],
  ])("of a header with %j is %s", (fields, root) => {
    expect(rootIdOf(createHeader({ id: "s", ...fields }))).toBe(root);
  });

  test("is refused if it is not a session id", () => {
    expect(() => createHeader({ rootId: "a/b" })).toThrow(expect.objectContaining({ code: "INVALID_ID" }));
  });
});

describe("inherited", () => {
  test("is kept if it is present, and stays absent otherwise", () => {
    expect(header()).not.toHaveProperty("inherited");
    expect(header({ inherited: { entries: 2, counts: false } }).inherited).toEqual({ entries: 2, counts: false });
  });

  test.for<unknown>([null, 3, [], {}, { entries: -1, counts: true }, { entries: 1.5, counts: true }, { entries: 1 }])(
    "is not %j",
    (inherited) => {
      expect(() => checkHeader({ ...header(), inherited })).toThrow(/inherited/);
    },
  );
});

describe("isTimestamp", () => {
  test.for(["2024-02-29T23:59:59.999Z", "0001-01-01T00:00:00.000Z", timeAt(0)])("takes %s", (time) => {
    expect(isTimestamp(time)).toBe(true);
  });

  test.for<unknown>([
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00.000",
    "2024-01-01T00:00:00.000+01:00",
    "2024-01-01 00:00:00.000Z",
    "2024-1-1T00:00:00.000Z",
    "2024-13-01T00:00:00.000Z",
    "2024-02-30T00:00:00.000Z",
    "2024-01-01T24:00:00.000Z",
    "2024-01-01T00:00:00.000Z\n",
    "",
    1704067200000,
    null,
    undefined,
  ])("does not take %j", (time) => {
    expect(isTimestamp(time)).toBe(false);
  });
});
