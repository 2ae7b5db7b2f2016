import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { handoff } from "../../src/cli/commands/keeping/handoff.ts";
import { importCommand } from "../../src/cli/commands/keeping/import.ts";
import { runProgram } from "../../src/cli/run-program.ts";
import { FOREIGN_FORMATS, foreignFormat, type FormatName, writeForeign } from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { goldenText, importText, linesOf } from "./foreign-samples.ts";

/** A file of each program, with the id in it. */
const SAMPLES: Readonly<Record<FormatName, readonly [file: string, id: string]>> = {
  "claude-code": ["claude-code-2.1.197.jsonl", "2445357f-ad08-4061-8f67-32363e2a253b"],
  codex: ["codex-0.166.0-conversation.jsonl", "01a1e313-a9ec-71f1-8125-351ae5f9e0f4"],
  opencode: ["opencode-1.18.33-conversation.json", "ses_e1ceb7b0dffes4ueyiTZBKwuRK"],
  openrath: ["openrath-1.2-closed.jsonl", "7e4dac36-d4bc-492e-bb1d-fbdbf8abaa14"],
  pi: ["pi-0.73.1.jsonl", "01a1e329-8afd-725e-92ee-5adbf1e074ee"],
};

const HOSTILE: Readonly<Record<string, string>> = {
  "an option": "--dangerously-skip-permissions",
  "a short option": "-c",
  "a path that climbs": "../../../../escaped",
  "a path that climbs after a UUID": "01a1e329-8afd-725e-92ee-5adbf1e074ee/../../../../../escaped",
  "an absolute path": "/tmp/escaped",
  "a path of Windows": "..\\..\\..\\escaped",
  "a drive of Windows": "C:\\escaped",
  "a NUL": "01a1e329-8afd-725e-92ee-5adbf1e074ee\0.txt",
  "a newline": "01a1e329-8afd-725e-92ee-5adbf1e074ee\n",
  "a command substitution": "$(touch escaped)",
  "ten thousand characters": "a".repeat(10_000),
  "a UUID with letters that only look alike": "01а1е329-8аfd-725е-92ее-5аdbf1е074ее",
  "a UUID with dashes that only look alike": "01a1e329‐8afd‐725e‐92ee‐5adbf1e074ee",
  "full-width digits": "01a1e329-8afd-725e-92ee-５５５５５５５５５５５５",
  "an id of opencode's that goes on": "ses_e1ceb7b0dffes4ueyiTZBKwuRK/../../../../escaped",
  "an id of opencode's that is too short": "ses_",
  "a space": " ",
  nothing: "",
  dots: "..",
};

const OWN_ID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{26})$/;

/** The file of a program with another id in it. */
function withId(format: FormatName, id: string): string {
  const [file, own] = SAMPLES[format];
  return goldenText(file).replaceAll(own, JSON.stringify(id).slice(1, -1));
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "formats-"));
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  for (const variable of ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "OPENRATH_HOME"])
    vi.stubEnv(variable, join(directory, "programs", "of", "the", "user"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

async function skein(...args: readonly string[]) {
  const output = { out: "", err: "" };
  const store = `jsonl:${join(directory, "store")}`;
  const code = await runProgram([importCommand, handoff], [...args, "--store", store], {
    out: (text) => void (output.out += text),
    err: (text) => void (output.err += text),
    ...{ colours: false, watched: false, signal: new AbortController().signal },
  });
  return { code, ...output };
}

describe.for(Object.keys(SAMPLES) as FormatName[])("a file of %s whose id is", (name) => {
  const format = foreignFormat(name);

  test.for(Object.entries(HOSTILE))(
    "%s becomes a file in the program's directory, and not an option",
    async ([, id]) => {
      await using store = openMemoryStore();
      const sessionId = await importText(store, format, withId(name, id));
      const writing = await writeForeign(format, store, sessionId, { cwd: "/srv/shop" });
      const { path, commands } = writing.handoff;
      expect(relative(format.home(), path)).not.toMatch(/^\.\.|^[/\\]/);
      expect(path.split(sep).at(-1)?.length).toBeLessThan(100);
      for (const argument of commands.flat()) expect(argument === path || /^(?:--)?[\w-]+$/.test(argument)).toBe(true);
      const last = commands.at(-1)?.at(-1) ?? path;
      expect(last === path || OWN_ID.test(last)).toBe(true);
      let text = "";
      for await (const piece of writing.pieces) text += piece;
      const again = await writeForeign(format, store, sessionId, { cwd: "/srv/shop" });
      expect(again.handoff).toEqual(writing.handoff);
      expect(await importText(store, format, text)).not.toBe("");
    },
  );

  test("of the program's own form is used again", async () => {
    const [, id] = SAMPLES[name];
    await using store = openMemoryStore();
    const { handoff } = await writeForeign(format, store, await importText(store, format, withId(name, id)));
    expect(handoff.path).toContain(id);
  });
});

test("handoff writes nothing outside of the program's directory, and hands no option to the program", async () => {
  const file = join(directory, "talk.jsonl");
  for (const id of ["--dangerously-skip-permissions", "../../../../../../escaped"]) {
    for (const name of ["claude-code", "pi", "codex", "openrath"] as const) {
      await writeFile(file, withId(name, id));
      expect((await skein("import", file)).code).toBe(0);
      const { code, out } = await skein("handoff", "last", "--to", name, "--cwd", directory);
      expect([code, out]).toEqual([0, expect.not.stringContaining(id)]);
    }
  }
  expect((await readdir(directory)).sort()).toEqual(["home", "programs", "store", "talk.jsonl"]);
  expect(await readdir(join(directory, "programs"))).toEqual(["of"]);
});

test("a directory that begins with a dash is not an option of cd", async () => {
  const file = join(directory, "talk.jsonl");
  await writeFile(file, goldenText("pi-0.73.1.jsonl").replace('"/srv/shop"', '"-P"'));
  await skein("import", file);
  expect((await skein("handoff", "last", "--to", "pi")).out).toContain("cd -- -P\n");
});

test("a directory that is too long for a file name is refused with an error message", async () => {
  const file = join(directory, "talk.jsonl");
  await writeFile(file, goldenText("pi-0.73.1.jsonl").replace('"/srv/shop"', `"/srv/${"a".repeat(4000)}"`));
  await skein("import", file);
  const { code, err } = await skein("handoff", "last", "--to", "pi");
  expect([code, err]).toEqual([2, expect.stringContaining("--cwd")]);
});

test.for(["/a/../../x", "..", "../..", "a\\..\\..\\b", "C:\\x\\..", "/ünï/cödé/\u202e"])(
  "the directory %s of a session becomes a single name below the program's directory",
  async (cwd) => {
    await using store = openMemoryStore();
    const { header } = await store.create(createHeader({ cwd }));
    for (const format of FOREIGN_FORMATS) {
      const { path } = (await writeForeign(format, store, header.id)).handoff;
      const below = relative(format.home(), path).split(sep);
      expect(below).not.toContain("..");
      expect(below.length).toBe(format.name === "codex" ? 4 : ["claude-code", "pi"].includes(format.name) ? 2 : 1);
    }
  },
);

test.for([[5], [null], [{}], [["x"]], ["../x"], ["--x"]])(
  "%j in the metadata of an import is not used as an id",
  async ([id = null]) => {
    await using store = openMemoryStore();
    for (const format of FOREIGN_FORMATS) {
      const foreign = { format: format.name, id, version: {}, rest: [] };
      const { header } = await store.create(createHeader({ id: `of-${format.name}`, metadata: { foreign } }));
      const { handoff, pieces } = await writeForeign(format, store, header.id, { cwd: "/srv" });
      for await (const piece of pieces) expect(piece).not.toContain("--x");
      expect(handoff.path).toContain(format.sessionIdFrom(header.id));
    }
  },
);

test("an id that a caller asks for has the program's form, or is replaced by a derived one", async () => {
  await using store = openMemoryStore();
  const { header } = await store.create(createHeader());
  for (const format of FOREIGN_FORMATS) {
    const { handoff } = await writeForeign(format, store, header.id, { foreignId: "--continue" });
    expect(handoff.path).toContain(format.sessionIdFrom("--continue"));
  }
});

test("the session of a sub-agent is handed over under a new id", async () => {
  await using store = openMemoryStore();
  const format = foreignFormat("claude-code");
  const sessionId = await importText(store, format, goldenText("claude-code-2.1.197-sub-agent.jsonl"));
  const { handoff, pieces } = await writeForeign(format, store, sessionId);
  const id = handoff.commands[0]?.at(-1) as string;
  expect(id).toMatch(OWN_ID);
  let text = "";
  for await (const piece of pieces) text += piece;
  expect(new Set(linesOf(text).map((line) => JSON.parse(line).sessionId))).toEqual(new Set([id]));
});

test("an opencode document names no file outside, and allows no tool that the program would ask about", async () => {
  const document = JSON.parse(goldenText("opencode-1.18.33-conversation.json"));
  Object.assign(document.info, {
    ...{ slug: "../../../escaped", projectID: "../escaped", parentID: "../escaped", path: "../../escaped" },
    permission: [
      { permission: "*", pattern: "*", action: "allow" },
      { permission: "bash", pattern: "*", action: "deny" },
    ],
  });
  document.messages[0].info.id = "msg_/../../../escaped";
  document.messages[0].parts[0].id = "../escaped";
  await using store = openMemoryStore();
  const format = foreignFormat("opencode");
  const sessionId = await importText(store, format, JSON.stringify(document));
  let text = "";
  for await (const piece of (await writeForeign(format, store, sessionId)).pieces) text += piece;
  expect(text).not.toContain("escaped");
  expect(JSON.parse(text).info.permission).toEqual([{ permission: "bash", pattern: "*", action: "deny" }]);
});

test("a command has `--` before its arguments if the program supports it", async () => {
  await mkdir(join(directory, "x"));
  const file = join(directory, "talk.jsonl");
  await writeFile(file, goldenText("codex-0.166.0-conversation.jsonl"));
  await skein("import", file);
  const { out } = await skein("handoff", "last", "--to", "codex", "--json");
  const { commands, path } = JSON.parse(out);
  expect(commands).toEqual([["codex", "resume", "--", SAMPLES.codex[1]]]);
  expect((await readFile(path, "utf8")).length).toBeGreaterThan(0);
});
