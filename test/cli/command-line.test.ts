import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { commandHelp, programHelp } from "../../src/cli/help.ts";
import { nearest } from "../../src/internal/nearest.ts";
import { parseCommandLine } from "../../src/cli/parse-command-line.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { say } from "../moving/sample-store.ts";
import { runHere, sampleStore } from "./run-skein.ts";

// biome-ignore format: a table reads best with one mistake per line.
const mistakes: [args: string[], said: string][] = [
  [["lsit"], 'There is no command "lsit"; did you mean list?'],
  [["nonsense"], 'There is no command "nonsense"; skein --help lists the commands.'],
  [["__proto__"], 'There is no command "__proto__"; skein --help lists the commands.'],
  [["help", "nonsense"], 'There is no command "nonsense"; skein --help lists the commands.'],
  [["--what"], 'The command is missing before "--what"; skein --help lists the commands.'],
  [["show"], "show needs <session>. See skein show --help."],
  [["merge", "a"], "merge needs <branch>. See skein merge --help."],
  [["rename", "a", ""], "rename needs <name>. See skein rename --help."],
  [["tree", "a", "b"], 'tree accepts no further argument, but got "b". See skein tree --help.'],
  [["list", "all"], 'list accepts no further argument, but got "all". See skein list --help.'],
  [["list", "--limt", "5"], "list has no option --limt; did you mean --limit? See skein list --help."],
  [["list", "-l"], "list has no option -l; its help lists them. See skein list --help."],
  [["list", "--constructor"], "list has no option --constructor; its help lists them. See skein list --help."],
  [["list", "--limit"], "--limit needs a value: --limit N. See skein list --help."],
  [["list", "--limit="], "--limit needs a value: --limit N. See skein list --help."],
  [["list", "--user", "--json"], '--user needs a value before "--json"; if that is the value, write --user=--json. See skein list --help.'],
  [["list", "--json=yes"], "--json takes no value; write it alone. See skein list --help."],
  [["list", "--status", "open"], '--status is "open"; use active, suspended, closed or expired. See skein list --help.'],
  [["completion", "sh"], '<shell> is "sh"; use bash, zsh or fish. See skein completion --help.'],
  [["list", "--limit", "0", "--store", "memory:"], '--limit is "0"; give a whole number of 1 or more.'],
  [["list", "--limit", "1e3", "--store", "memory:"], '--limit is "1e3"; give a whole number of 1 or more.'],
  [["prune", "--older-than", "30"], '--older-than is "30"; give a number and a unit (s, m, h, d, w), as in 30d.'],
  [["prune", "--store", "memory:"], "prune needs at least one of --older-than, --erase and --purge; see skein prune --help."],
  [["list", "--store", "oracle://me:hush@host/x"], '"oracle://…@host/x" names no store; use memory:, '],
  [["copy", "--from", "memory:"], "copy needs --to with the URL of a store other than --from."],
  [["copy", "--from", "memory:", "--to", "memory:"], "copy needs --to with the URL of a store other than --from."],
  [["copy", "--from", "memory:", "--to", "sqlite:x", "--concurrency", "many"], '--concurrency is "many"; give a whole number'],
  [["doctor", "--store", "memory:", "--repair"], "Only files can be repaired: --repair needs a jsonl: store."],
];

test.for(mistakes)("rejects %j with one sentence and exit code 2", async ([args, said]) => {
  const { code, stdout, stderr } = await runHere(args);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.startsWith(said)).toBe(true);
  expect(stderr).toMatch(/^[^\n]+\n$/);
});

test("exits with 1 for a missing session, and never prints the password of a URL", async () => {
  const store = await sampleStore();
  expect(await runHere(["show", "nobody", "--store", store])).toEqual({
    code: 1,
    stdout: "",
    stderr: 'There is no session "nobody"; skein list shows the sessions.\n',
  });
  const { stderr } = await runHere(["redis://me:hush@host"]);
  expect(stderr).not.toContain("hush");
});

test("accepts global options before the command as well", async () => {
  const store = await sampleStore();
  const { code, stdout } = await runHere(["--store", store, "--json", "list", "--limit", "1"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { sessions: [{ id: "plan-b" }] }]);
});

describe("a session is named", () => {
  const fill = async (store: Parameters<NonNullable<Parameters<typeof sampleStore>[0]>>[0]) => {
    for (const id of [
      "abc-1",
      "abc-2",
      "abd",
      "a",
      "last-but-one",
      ...Array.from({ length: 6 }, (_, i) => `many-${i}`),
    ]) {
      await store.create(createHeader({ id }));
    }
    // The latest message counts, so the clock must have advanced.
    const made = Date.now();
    await vi.waitUntil(() => Date.now() > made, { interval: 1 });
    await store.append("abd", [say("m")]);
  };
  const shown = async (store: string, reference: string) => {
    const { code, stdout, stderr } = await runHere(["show", reference, "--json", "--store", store]);
    return code === 0 ? (JSON.parse(stdout) as { session: { id: string } }).session.id : `${code} ${stderr.trimEnd()}`;
  };

  test("by its id, by a unique prefix, or as the last one", async () => {
    const store = await sampleStore(fill);
    expect(await shown(store, "a")).toBe("a");
    expect(await shown(store, "abd")).toBe("abd");
    expect(await shown(store, "abc-2")).toBe("abc-2");
    expect(await shown(store, "last-")).toBe("last-but-one");
    expect(await shown(store, "last")).toBe("abd");
  });

  test("by a unique suffix, also with dots before it", async () => {
    const store = await sampleStore(fill);
    expect(await shown(store, "c-2")).toBe("abc-2");
    expect(await shown(store, "…but-one")).toBe("last-but-one");
    expect(await shown(store, "...d")).toBe("abd");
    // Other ids begin with it.
    expect(await shown(store, "…a")).toBe("a");
    expect(await shown(store, "…-1")).toMatch(/^2 "…-1" matches (?=.*abc-1)(?=.*many-1)/);
    expect(await shown(store, "…ab")).toBe('1 There is no session "…ab"; skein list shows the sessions.');
  });

  test("and a prefix of several is rejected with a list of them", async () => {
    const store = await sampleStore(fill);
    expect(await shown(store, "ab")).toMatch(
      /^2 "ab" matches (?=.*abc-1)(?=.*abc-2)(?=.*abd).*; write more of the id\.$/,
    );
    expect(await shown(store, "many")).toMatch(
      /^2 "many" matches (?:many-\d, ){4}many-\d and 1 more; write more of the id\.$/,
    );
  });
});

describe("the help", () => {
  test.for(commands)("of $name fits the terminal and has a valid example", (command) => {
    for (const columns of [44, 60, 80, 200])
      expect(widestOf(commandHelp(command, columns))).toBeLessThanOrEqual(columns);
    const help = commandHelp(command);
    expect(help).toContain(`Usage: skein ${command.name}`);
    expect(command.examples.length).toBeGreaterThan(0);
    for (const { line } of command.examples) {
      const [, args = ""] = new RegExp(`skein ${command.name}\\b(?: ([^|>)]*))?`).exec(line) ?? [];
      expect(line).toContain(`skein ${command.name}`);
      expect(() => parseCommandLine(command, shellWords(args))).not.toThrow();
    }
  });

  test("of the program fits the terminal and names every command", async () => {
    const help = programHelp(commands);
    for (const columns of [44, 60, 80, 200])
      expect(widestOf(programHelp(commands, columns))).toBeLessThanOrEqual(columns);
    expect(await runHere(["--help"], { columns: 44 })).toMatchObject({ stdout: `${programHelp(commands, 44)}\n` });
    for (const { name } of commands) expect(help).toMatch(new RegExp(`^ {2}${name} `, "m"));
    for (const args of [[], ["--help"], ["-h"], ["help"]]) {
      expect(await runHere(args)).toEqual({ code: 0, stdout: `${help}\n`, stderr: "" });
    }
  });

  test("is printed for a command in three ways, also beside other arguments", async () => {
    const [wanted] = commands.filter(({ name }) => name === "merge");
    const stdout = `${commandHelp(wanted as (typeof commands)[number])}\n`;
    for (const args of [
      ["merge", "--help"],
      ["help", "merge"],
      ["merge", "-h"],
      ["merge", "a", "b", "c", "--help"],
    ]) {
      expect(await runHere(args)).toEqual({ code: 0, stdout, stderr: "" });
    }
  });

  test("prints its version", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    expect(await runHere(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });
});

test("suggests the closest word, and none if none is close", () => {
  const known = ["list", "label", "restore", "undelete"];
  expect(["lits", "lst", "lable", "restor", "undelte"].map((word) => nearest(word, known))).toEqual([
    "list",
    "list",
    "label",
    "restore",
    "undelete",
  ]);
  expect(["", "x", "xy", "stats", "unrelated"].map((word) => nearest(word, known))).toEqual([
    null,
    null,
    null,
    null,
    null,
  ]);
});

test("prints progress only to a terminal, and never with --json", async () => {
  const store = await sampleStore();
  const copy = ["copy", "--from", store, "--to", "memory:"];
  expect((await runHere(copy, { watched: true })).stderr).toMatch(/sessions copied\n/);
  expect((await runHere(copy)).stderr).toBe("");
  expect((await runHere([...copy, "--json"], { watched: true })).stderr).toBe("");
});

test("an interrupted command reports that and exits with 1", async () => {
  const store = await sampleStore();
  const signal = AbortSignal.abort(new Error("The command was interrupted."));
  expect(await runHere(["doctor", "--store", store], { signal })).toEqual({
    code: 1,
    stdout: "",
    stderr: "The command was interrupted.\n",
  });
});

function widestOf(text: string): number {
  return Math.max(...text.split("\n").map((line) => line.length));
}

/** The words of an example, split as by a shell. */
function shellWords(text: string): string[] {
  return [...text.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? "",
  );
}
