import assert from "node:assert/strict";
import { fails, pathsOf, shell, textOf } from "./sandbox-checks.ts";
import type { SandboxCase } from "./sandbox-case.ts";

/** Cases: the file methods, and paths that leave the root. */
export const fileCases: readonly SandboxCase[] = [
  {
    name: "reads back written files byte for byte, and creates missing parent directories",
    async run({ open }) {
      const sandbox = await open();
      const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
      await sandbox.writeFile("a/b/bytes.bin", bytes);
      assert.deepEqual(Uint8Array.from(await sandbox.readFile("a/b/bytes.bin")), bytes);
      await sandbox.writeFile("grüße.txt", "grüße");
      assert.equal(await textOf(sandbox, "./grüße.txt"), "grüße");
      await sandbox.writeFile("a/b/bytes.bin", "");
      assert.equal((await sandbox.readFile("a/b/bytes.bin")).length, 0);
    },
  },
  {
    name: "commands and file methods see each other's files",
    needs: ["shell"],
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("in.txt", "text");
      await shell(sandbox, "tr a-z A-Z < in.txt > out.txt");
      assert.equal(await textOf(sandbox, "out.txt"), "TEXT");
    },
  },
  {
    name: "accepts an absolute path inside of the root",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile(`${sandbox.workingDir}/a.txt`, "a");
      assert.equal(await textOf(sandbox, "a.txt"), "a");
      assert.equal(await sandbox.exists(`${sandbox.workingDir}/a.txt`), true);
      assert.equal((await sandbox.list(sandbox.workingDir))[0]?.path, "a.txt");
    },
  },
  {
    name: "fails with file_not_found for a missing file or directory",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("file.txt", "");
      await fails(sandbox.readFile("nowhere.txt"), "file_not_found");
      await fails(sandbox.readFile("file.txt/below"), "file_not_found");
      await fails(sandbox.list("nowhere"), "file_not_found");
      assert.equal(await sandbox.exists("nowhere"), false);
      assert.equal(await sandbox.exists("file.txt/below"), false);
      assert.equal(await sandbox.remove("nowhere"), false);
      assert.equal(await sandbox.remove("nowhere/below"), false);
    },
  },
  {
    name: "refuses to read or write a directory as a file, and to list a file",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("directory/file.txt", "kept");
      await fails(sandbox.readFile("directory"), "os_error");
      await fails(sandbox.writeFile("directory", "x"), "os_error");
      await fails(sandbox.writeFile(".", "x"), "os_error");
      await fails(sandbox.list("directory/file.txt"), "os_error");
      assert.deepEqual(await pathsOf(sandbox), ["directory", "directory/file.txt"]);
    },
  },
  {
    name: "refuses to read a file larger than bytesMax, and reads one of exactly that size",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("ten.txt", "0123456789");
      await fails(sandbox.readFile("ten.txt", { bytesMax: 9 }), "output_truncated");
      assert.equal((await sandbox.readFile("ten.txt", { bytesMax: 10 })).length, 10);
    },
  },
  {
    name: "replaces files atomically for concurrent readers",
    async run({ open }) {
      const sandbox = await open();
      const texts = ["a", "b"].map((sign) => sign.repeat(200_000));
      await sandbox.writeFile("file.txt", texts[0] as string);
      const writing = (async () => {
        for (let round = 0; round < 20; round++) await sandbox.writeFile("file.txt", texts[round % 2] as string);
      })();
      for (let round = 0; round < 20; round++) {
        const text = await textOf(sandbox, "file.txt");
        assert.ok(texts.includes(text), `a reader got ${text.length} characters of two mixed texts`);
      }
      await writing;
      assert.deepEqual(await pathsOf(sandbox), ["file.txt"]);
    },
  },
  {
    name: "keeps the mode of a file that is rewritten",
    needs: ["shell", "modes"],
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("run.sh", "#!/bin/sh\necho one");
      await shell(sandbox, "chmod 754 run.sh");
      await sandbox.writeFile("run.sh", "#!/bin/sh\necho two");
      assert.equal(await shell(sandbox, "./run.sh; stat -c %a run.sh"), "two\n754\n");
    },
  },
  {
    name: "lists items with type and size, sorted by path, recursively if requested, up to the limit",
    async run({ open }) {
      const sandbox = await open();
      for (const path of ["b.txt", "a/z.txt", "a/b/c.txt", "a-b", "a.txt"]) await sandbox.writeFile(path, "12345");
      const flat = await sandbox.list();
      assert.deepEqual(
        flat.map(({ path, type }) => [path, type]),
        [
          ["a", "directory"],
          ["a-b", "file"],
          ["a.txt", "file"],
          ["b.txt", "file"],
        ],
      );
      assert.equal(flat[1]?.sizeBytes, 5);
      assert.deepEqual(await pathsOf(sandbox), ["a", "a-b", "a.txt", "a/b", "a/b/c.txt", "a/z.txt", "b.txt"]);
      assert.deepEqual(
        (await sandbox.list("a")).map(({ path }) => path),
        ["a/b", "a/z.txt"],
      );
      const few = await sandbox.list(".", { recursive: true, limit: 4 });
      assert.deepEqual(
        few.map(({ path }) => path),
        ["a", "a-b", "a.txt", "a/b"],
      );
      assert.deepEqual(await sandbox.list(".", { limit: 0 }), []);
    },
  },
  {
    name: "removes files and whole directories, but not its root",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("a/b/c.txt", "");
      await sandbox.writeFile("d.txt", "");
      assert.equal(await sandbox.remove("a"), true);
      assert.equal(await sandbox.remove("a"), false);
      assert.deepEqual(await pathsOf(sandbox), ["d.txt"]);
      for (const path of [".", "", "a/..", sandbox.workingDir]) await fails(sandbox.remove(path), "not_permitted");
      assert.deepEqual(await pathsOf(sandbox), ["d.txt"]);
    },
  },
  {
    name: "refuses paths that leave the root by dots or as absolute paths, and paths with NUL",
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("inner/file.txt", "");
      const paths = ["..", "../x", "inner/../../x", "/etc/hostname", "/", "a\0b", `${sandbox.workingDir}-other`];
      for (const path of paths) {
        await fails(sandbox.readFile(path), "not_permitted");
        await fails(sandbox.writeFile(path, "x"), "not_permitted");
        await fails(sandbox.list(path), "not_permitted");
        await fails(sandbox.exists(path), "not_permitted");
        await fails(sandbox.remove(path), "not_permitted");
      }
      assert.equal(await sandbox.exists("inner/../inner/file.txt"), true);
    },
  },
  {
    name: "refuses symbolic links that lead out of the root, anywhere in a path",
    needs: ["shell", "links"],
    async run({ open }) {
      const sandbox = await open();
      await shell(
        sandbox,
        "ln -s /etc/passwd file; ln -s /etc folder; ln -s folder chain; ln -s /nowhere/at/all dangling",
      );
      for (const path of ["file", "folder/passwd", "chain/passwd", "dangling", "folder/not-there"]) {
        await fails(sandbox.readFile(path), "not_permitted");
        await fails(sandbox.writeFile(path, "x"), "not_permitted");
        await fails(sandbox.exists(path), "not_permitted");
      }
      for (const path of ["folder", "chain"]) {
        await fails(sandbox.list(path), "not_permitted");
        await fails(sandbox.exec(["true"], { cwd: path }), "not_permitted");
        await fails(sandbox.remove(`${path}/passwd`), "not_permitted");
      }
      const listed = await sandbox.list(".", { recursive: true });
      assert.deepEqual(new Set(listed.map(({ type }) => type)), new Set(["symlink"]));
    },
  },
  {
    name: "follows symbolic links inside of the root, and removes a link without its target",
    needs: ["shell", "links"],
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("real/file.txt", "old");
      await shell(sandbox, "ln -s real link; ln -s ../real/file.txt real/alias; ln -s real/later early");
      await sandbox.writeFile("link/alias", "new");
      assert.equal(await textOf(sandbox, "real/file.txt"), "new");
      assert.deepEqual(
        (await sandbox.list("link")).map(({ path }) => path),
        ["link/alias", "link/file.txt"],
      );
      assert.equal(await sandbox.exists("early"), false);
      await sandbox.writeFile("early", "x");
      assert.equal(await textOf(sandbox, "real/later"), "x");
      assert.equal(await sandbox.remove("link"), true);
      assert.equal(await textOf(sandbox, "real/file.txt"), "new");
    },
  },
  {
    name: "removes a directory without following the links in it",
    needs: ["shell", "links"],
    async run({ open }) {
      const sandbox = await open();
      await sandbox.writeFile("kept/file.txt", "kept");
      await shell(sandbox, "mkdir doomed; ln -s ../kept doomed/link; ln -s loop doomed/loop");
      assert.equal(await sandbox.remove("doomed"), true);
      assert.equal(await textOf(sandbox, "kept/file.txt"), "kept");
    },
  },
];
