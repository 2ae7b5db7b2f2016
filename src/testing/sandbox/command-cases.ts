import assert from "node:assert/strict";
import { fails, shell } from "./sandbox-checks.ts";
import type { SandboxCase } from "./sandbox-case.ts";

/** Cases: running commands and code. */
export const commandCases: readonly SandboxCase[] = [
  {
    name: "runs a string in its shell, and returns exit code, stdout and stderr",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      const result = await sandbox.exec("echo one; echo two >&2; exit 3");
      assert.equal(result.exitCode, 3);
      assert.deepEqual([result.stdout, result.stderr, result.truncated], ["one\n", "two\n", false]);
      assert.ok(result.elapsedMs >= 0);
    },
  },
  {
    name: "runs a list as a program with arguments, without a shell",
    async run({ open }) {
      const sandbox = await open();
      const { stdout } = await sandbox.exec(["printf", "%s|", "$HOME", "a b", "*", "'"]);
      assert.equal(stdout, "$HOME|a b|*|'|");
    },
  },
  {
    name: "runs a command in the root, or in its cwd",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("inner/file.txt", "");
      assert.equal((await shell(sandbox, "pwd")).trim(), sandbox.workingDir);
      assert.equal((await sandbox.exec("ls", { cwd: "inner" })).stdout, "file.txt\n");
    },
  },
  {
    name: "refuses a cwd that is missing, a file, or outside of the root",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("file.txt", "");
      await fails(sandbox.exec(["true"], { cwd: "nowhere" }), "file_not_found");
      await fails(sandbox.exec(["true"], { cwd: "file.txt" }), "os_error");
      await fails(sandbox.exec(["true"], { cwd: ".." }), "not_permitted");
      await fails(sandbox.exec(["true"], { cwd: "/" }), "not_permitted");
    },
  },
  {
    name: "passes the variables of the spec to a command, overridden by the command's own",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open({ env: { ONE: "spec", TWO: "spec" } });
      const { stdout } = await sandbox.exec('echo "$ONE $TWO $THREE"', { env: { TWO: "own", THREE: "own" } });
      assert.equal(stdout, "spec own own\n");
      assert.equal(await shell(sandbox, 'echo "$ONE $TWO $THREE"'), "spec spec \n");
    },
  },
  {
    name: "passes text and bytes to a command's stdin, which is empty by default",
    async run({ open }) {
      const sandbox = await open();
      assert.equal((await sandbox.exec(["cat"], { stdin: "grüße\n" })).stdout, "grüße\n");
      assert.equal((await sandbox.exec(["cat"], { stdin: new Uint8Array([104, 105]) })).stdout, "hi");
      assert.equal((await sandbox.exec(["cat"])).stdout, "");
    },
  },
  {
    name: "accepts a command that ends without reading its stdin",
    async run({ open }) {
      const sandbox = await open();
      assert.equal((await sandbox.exec(["true"], { stdin: "x".repeat(2_000_000) })).exitCode, 0);
    },
  },
  {
    name: "fails with os_error for a missing program",
    needs: ["programs"],
    async run({ open }) {
      const sandbox = await open();
      await fails(sandbox.exec(["no-such-program-anywhere"]), "os_error");
      await fails(sandbox.exec(["./neither-here"]), "os_error");
    },
  },
  {
    name: "fails with os_error for an empty command",
    async run({ open }) {
      const sandbox = await open();
      await fails(sandbox.exec(""), "os_error");
      await fails(sandbox.exec([]), "os_error");
    },
  },
  {
    name: "refuses an invalid timeout",
    async run({ open }) {
      const sandbox = await open();
      for (const timeoutMs of [-1, 0, Number.NaN]) await fails(sandbox.exec(["true"], { timeoutMs }), "unsupported");
    },
  },
  {
    name: "reports a command killed by a signal with the exit code of a shell, 128 plus the signal",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      assert.equal((await sandbox.exec("kill -9 $$")).exitCode, 137);
      assert.equal((await sandbox.exec("kill -15 $$")).exitCode, 143);
    },
  },
  {
    name: "keeps the beginning and end of long output, and says between them how much was left out",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      const { stdout, stderr, truncated } = await sandbox.exec(
        "echo first; yes ünïcödé | head -c 5000000; echo; echo last; echo small >&2",
      );
      assert.equal(truncated, true);
      assert.ok(stdout.startsWith("first\n") && stdout.endsWith("\nlast\n"));
      assert.ok(stdout.length < 1_000_000, `${stdout.length} characters were kept`);
      assert.match(stdout, /\[\d+ bytes were left out here\]/);
      assert.ok(!stdout.includes("�"), "a character was cut in two");
      assert.equal(stderr, "small\n");
    },
  },
  {
    name: "runs several commands concurrently",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      // Each waits for a file of the other, so they only end if they run concurrently.
      const [one, other] = await Promise.all([
        sandbox.exec("echo a > one; while [ ! -e other ]; do sleep 0.02; done; echo one", { timeoutMs: 20_000 }),
        sandbox.exec("echo b > other; while [ ! -e one ]; do sleep 0.02; done; echo other", { timeoutMs: 20_000 }),
      ]);
      assert.deepEqual([one.stdout, other.stdout], ["one\n", "other\n"]);
    },
  },
  {
    name: "runs code of any length in every language that it declares, and refuses others",
    async run({ open }) {
      const sandbox = await open();
      const filler = (sign: string): string => `${sign} ${"x".repeat(300_000)}\n`;
      const programs: Record<string, string> = {
        python: `${filler("#")}import sys\nprint("python", sys.stdin.read())`,
        javascript: `${filler("//")}console.log("javascript", require("node:fs").readFileSync(0, "utf8"))`,
        sh: `${filler("#")}echo sh "$(cat)"`,
        bash: `${filler("#")}echo bash "$(cat)"`,
      };
      for (const language of sandbox.capabilities.languages) {
        const program = programs[language];
        if (program === undefined) continue;
        const { stdout, stderr, exitCode } = await sandbox.runCode(language, program, { stdin: "in" });
        assert.deepEqual([exitCode, stdout], [0, `${language} in\n`], stderr);
      }
      assert.deepEqual(await sandbox.list(), [], "running code left files behind");
      await fails(sandbox.runCode("no-such-language", ""), "unsupported");
    },
  },
];
