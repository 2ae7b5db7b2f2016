import assert from "node:assert/strict";
import type { JsonObject } from "../../internal/json.ts";
import type { FileChange, FileChanges, Sandbox, SandboxBackend } from "../../session/sandbox/sandbox.ts";
import { fails, pathsOf, shell, textOf } from "./sandbox-checks.ts";
import type { SandboxCase } from "./sandbox-case.ts";

/** Cases: snapshots and reattaching. */
export const snapshotCases: readonly SandboxCase[] = [
  {
    name: "restores a snapshot: changed, removed and added files",
    needs: ["snapshot"],
    async run({ backend, open }) {
      const sandbox = await open();
      await fillThree(sandbox);
      const snapshot = await sandbox.snapshot();
      await sandbox.writeFile("a.txt", "changed");
      await sandbox.remove("directory");
      await sandbox.writeFile("new/file.txt", "new");
      await sandbox.restore(snapshot);
      assert.deepEqual(await pathsOf(sandbox), ["a.txt", "directory", "directory/b.txt"]);
      assert.deepEqual([await textOf(sandbox, "a.txt"), await textOf(sandbox, "directory/b.txt")], ["a", "b"]);
      await backend.deleteSnapshot?.(snapshot);
    },
  },
  {
    name: "restores a snapshot to another sandbox, repeatedly, and after its own sandbox was closed",
    needs: ["snapshot"],
    async run({ backend, open }) {
      const source = await open();
      await fillThree(source);
      const snapshot = JSON.parse(JSON.stringify(await source.snapshot()));
      await source.close();
      const target = await open();
      await target.writeFile("other.txt", "");
      for (let round = 0; round < 2; round++) {
        await target.restore(snapshot);
        assert.deepEqual(await pathsOf(target), ["a.txt", "directory", "directory/b.txt"]);
        await target.writeFile("a.txt", "changed");
      }
      await backend.deleteSnapshot?.(snapshot);
    },
  },
  {
    name: "a snapshot contains modes, links and empty directories",
    needs: ["snapshot", "shell", "links", "modes"],
    async run({ backend, open }) {
      const sandbox = await open();
      await shell(
        sandbox,
        `mkdir empty closed; echo x > run; chmod 750 run; touch -d @1000000000 run; ln -s run link; ln -s /etc/passwd out;
         touch closed/file; chmod 555 closed; mkfifo pipe`,
      );
      const look = `stat -c "%n %a %F" empty closed closed/file run; stat -c %Y run; readlink link out`;
      const before = await shell(sandbox, look);
      const snapshot = await sandbox.snapshot();
      await shell(sandbox, "chmod -R u+rwx .; rm -rf *");
      await sandbox.restore(snapshot);
      assert.equal(await shell(sandbox, look), before);
      assert.equal(await sandbox.exists("pipe"), false);
      await fails(sandbox.readFile("out"), "not_permitted");
      await backend.deleteSnapshot?.(snapshot);
    },
  },
  {
    name: "refuses an invalid or deleted snapshot, and does not change the files",
    needs: ["snapshot"],
    async run({ backend, open }) {
      const sandbox = await open();
      await fillThree(sandbox);
      const snapshot = await sandbox.snapshot();
      const hostile = [{}, { ...snapshot, id: "../.." }, { ...snapshot, id: "" }, { ...snapshot, backend: "other" }];
      for (const value of hostile) await fails(sandbox.restore(value), "unsupported");
      if (backend.deleteSnapshot !== undefined) {
        for (const value of hostile) await fails(backend.deleteSnapshot(value), "unsupported");
        assert.equal(await backend.deleteSnapshot(snapshot), true);
        assert.equal(await backend.deleteSnapshot(snapshot), false);
        await fails(sandbox.restore(snapshot), "file_not_found");
      }
      assert.equal(await textOf(sandbox, "directory/b.txt"), "b");
    },
  },
  {
    name: "compares two snapshots: which files differ, and the old and new content of small text files",
    needs: ["snapshot", "compare"],
    async run({ backend, open }) {
      const sandbox = await open();
      await fillThree(sandbox);
      await sandbox.writeFile("same.txt", "same");
      const before = await sandbox.snapshot();
      await sandbox.writeFile("a.txt", "b");
      await sandbox.remove("directory");
      await sandbox.writeFile("new/file.txt", "new");
      const after = await sandbox.snapshot();
      await sandbox.close();
      const changes: readonly FileChange[] = [
        { path: "a.txt", change: "changed", before: "a", after: "b" },
        { path: "directory/b.txt", change: "removed", before: "b" },
        { path: "new/file.txt", change: "added", after: "new" },
      ];
      assert.deepEqual(await compared(backend, before, after), { changes, truncated: false });
      assert.deepEqual(await compared(backend, after, after), { changes: [], truncated: false });
      await fails(compared(backend, before, { ...after, id: "../.." }), "unsupported");
      for (const snapshot of [before, after]) await backend.deleteSnapshot?.(snapshot);
    },
  },
  {
    name: "compares modes and link targets of two snapshots",
    needs: ["snapshot", "compare", "shell", "links", "modes"],
    async run({ backend, open }) {
      const sandbox = await open();
      await shell(sandbox, "echo x > run; chmod 640 run; ln -s run link; ln -s /etc/passwd out");
      const before = await sandbox.snapshot();
      await shell(sandbox, "chmod 750 run; ln -sfn /nowhere link");
      const after = await sandbox.snapshot();
      const { changes } = await compared(backend, before, after);
      assert.deepEqual(changes, [
        { path: "link", change: "changed", before: "run", after: "/nowhere" },
        { path: "run", change: "changed", before: "x\n", after: "x\n" },
      ]);
      for (const snapshot of [before, after]) await backend.deleteSnapshot?.(snapshot);
    },
  },
  {
    name: "reattaches to an open sandbox by its id, with its files",
    needs: ["reattach"],
    async run({ open, attach }) {
      const sandbox = await open();
      await fillThree(sandbox);
      const again = await attach(sandbox.id);
      assert.equal(again.id, sandbox.id);
      assert.equal(again.backend, sandbox.backend);
      assert.equal(await textOf(again, "directory/b.txt"), "b");
    },
  },
  {
    name: "fails with file_not_found for the id of a closed sandbox and for invalid ids",
    needs: ["reattach"],
    async run({ open, attach }) {
      const sandbox = await open();
      await sandbox.close();
      for (const id of [sandbox.id, "nowhere", "", "../..", "/etc", ".", "temporary-../x", "a\0b"]) {
        await fails(attach(id), "file_not_found");
      }
    },
  },
];

async function compared(backend: SandboxBackend, from: JsonObject, to: JsonObject): Promise<FileChanges> {
  const found = await backend.compareSnapshots?.(from, to);
  assert.ok(found !== undefined, "the backend must have compareSnapshots");
  return found;
}

async function fillThree(sandbox: Sandbox): Promise<void> {
  await sandbox.writeFile("a.txt", "a");
  await sandbox.writeFile("directory/b.txt", "b");
}
