import assert from "node:assert/strict";
import { appears, fails, holding, isFree, shell, textOf } from "./sandbox-checks.ts";
import type { SandboxCase } from "./sandbox-case.ts";

const LONG = "sleep 600";

/** Cases: timeouts, aborts and closing. */
export const endingCases: readonly SandboxCase[] = [
  {
    name: "stops a command after its timeout, with an error of kind timeout that has its output",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      const error = await fails(sandbox.exec(`echo so far; echo bad >&2; ${LONG}`, { timeoutMs: 1_000 }), "timeout");
      assert.deepEqual(error.output, { stdout: "so far\n", stderr: "bad\n" });
    },
  },
  {
    name: "uses the timeout of the spec for commands without their own",
    async run({ open }) {
      const sandbox = await open({ timeoutMs: 300 });
      await fails(sandbox.exec(LONG.split(" ")), "timeout");
      assert.equal((await sandbox.exec(["sleep", "0.5"], { timeoutMs: 30_000 })).exitCode, 0);
    },
  },
  {
    name: "does not allow a command a longer timeout than the limit of the spec",
    async run({ open }) {
      const sandbox = await open({ limits: { seconds: 0.3 } });
      await fails(sandbox.exec(LONG.split(" "), { timeoutMs: 30_000 }), "timeout");
      await fails(sandbox.exec(LONG.split(" ")), "timeout");
    },
  },
  {
    name: "rejects an aborted command with the signal's reason, and does not start it if it was aborted before",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      const reason = new Error("enough");
      const controller = new AbortController();
      const running = sandbox.exec(`touch started; ${LONG}`, { signal: controller.signal });
      await appears(sandbox, "started");
      controller.abort(reason);
      await assert.rejects(running, (error) => error === reason);
      await assert.rejects(sandbox.exec("touch late", { signal: controller.signal }), (error) => error === reason);
      assert.equal(await sandbox.exists("late"), false);
    },
  },
  ...[
    ["a child that ignores signals", `HOLD & ${LONG}`],
    ["a grandchild whose parent has ended", `(HOLD & ) ; ${LONG}`],
    ["a process in its own session", `setsid HOLD & ${LONG}`],
    ["a daemon without terminal, parent or output", `(setsid HOLD >/dev/null 2>&1 </dev/null &) ; ${LONG}`],
  ].map(
    ([what, start], index): SandboxCase => ({
      name: `leaves no process of an aborted command behind: ${what}`,
      needs: ["shell", "process-groups"],
      async run({ open }) {
        const sandbox = await open();
        const controller = new AbortController();
        const lock = `lock${index}`;
        const running = sandbox.exec(holding(lock, start as string), { signal: controller.signal });
        running.catch(() => {});
        await appears(sandbox, `${lock}.ready`);
        controller.abort(new Error("stop"));
        await assert.rejects(running, { message: "stop" });
        await isFree(sandbox, lock);
      },
    }),
  ),
  {
    name: "leaves no processes of a command behind after its timeout",
    needs: ["shell", "process-groups"],
    async run({ open }) {
      const sandbox = await open();
      await fails(sandbox.exec(holding("lock", `setsid HOLD & ${LONG}`), { timeoutMs: 1_500 }), "timeout");
      await isFree(sandbox, "lock");
    },
  },
  {
    name: "returns when the command ends, even if a child process keeps its output open, and kills that process",
    needs: ["shell", "process-groups"],
    async run({ open }) {
      const sandbox = await open();
      const start = `HOLD & while [ ! -e lock.ready ]; do sleep 0.02; done; echo done; exit 5`;
      const { exitCode, stdout } = await sandbox.exec(holding("lock", start), { timeoutMs: 60_000 });
      assert.deepEqual([exitCode, stdout], [5, "done\n"]);
      await isFree(sandbox, "lock");
    },
  },
  {
    name: "kills a command that keeps starting other processes",
    needs: ["shell", "process-groups"],
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile(
        "chain.sh",
        `echo "$1" > last\nsetsid sh chain.sh $(($1 + 1)) >/dev/null 2>&1 </dev/null &\n`,
      );
      const controller = new AbortController();
      const running = sandbox.exec(`sh chain.sh 1; touch ready; ${LONG}`, { signal: controller.signal });
      running.catch(() => {});
      await appears(sandbox, "ready");
      controller.abort(new Error("stop"));
      await assert.rejects(running, { message: "stop" });
      await sandbox.remove("last");
      // Each process of the chain runs for some milliseconds, so a survivor would have written the file by the end of this.
      await shell(sandbox, "sleep 0.3");
      assert.equal(await sandbox.exists("last"), false, "the chain of processes still runs");
    },
  },
  {
    name: "closing it makes a running command reject with sandbox_closed",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      const running = sandbox.exec(`touch started; ${LONG}`);
      running.catch(() => {});
      await appears(sandbox, "started");
      await sandbox.close();
      await fails(running, "sandbox_closed");
    },
  },
  {
    name: "after close, every method rejects with sandbox_closed, and close can be called again",
    async run({ open }) {
      const sandbox = await open();
      assert.equal(sandbox.closed, false);
      await Promise.all([sandbox.close(), sandbox.close()]);
      await sandbox.close();
      assert.equal(sandbox.closed, true);
      const calls = [
        () => sandbox.exec(["true"]),
        () => sandbox.runCode("sh", "true"),
        () => sandbox.readFile("a"),
        () => sandbox.writeFile("a", "a"),
        () => sandbox.list(),
        () => sandbox.exists("a"),
        () => sandbox.remove("a"),
        () => sandbox.snapshot(),
        () => sandbox.restore({}),
      ];
      for (const call of calls) await fails(call(), "sandbox_closed");
    },
  },
  {
    name: "isolates sandboxes that are open at the same time from each other",
    async run({ open }) {
      const [one, other] = await Promise.all([open(), open()]);
      assert.notEqual(one.id, other.id);
      await one.writeFile("file.txt", "one");
      assert.equal(await other.exists("file.txt"), false);
      await other.close();
      assert.equal(await textOf(one, "file.txt"), "one");
    },
  },
];
