import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import { type Sandbox, SandboxError } from "../../session/sandbox/sandbox.ts";
import { ConfinedFiles } from "./confined-files.ts";
import { Confinement } from "./confinement.ts";
import { localBackend } from "./local-backend.ts";

let directory: string;
let root: string;
let outside: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-confinement-")));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  [root, outside] = [join(directory, "root"), join(directory, "outside")];
  await mkdir(root);
  await mkdir(outside);
  await writeFile(join(outside, "secret.txt"), "secret");
});

async function open(): Promise<Sandbox> {
  // Without isolation, so that processes can try to exploit the file methods.
  const sandbox = await localBackend.open({ workingDir: root, isolation: "off" });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

const kindOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "done",
    (error) => (error instanceof SandboxError ? error.kind : Promise.reject(error)),
  );

test("no path made of names, dots and links reaches a file outside", async () => {
  const sandbox = await open();
  await mkdir(join(root, "a/b"), { recursive: true });
  await symlink("..", join(root, "a/up"));
  await symlink("../..", join(root, "a/b/far"));
  await symlink(outside, join(root, "a/out"));
  await symlink("up/up", join(root, "a/chain"));
  await symlink("loop", join(root, "loop"));
  const part = fc.constantFrom("a", "b", "up", "far", "out", "chain", "loop", "..", ".", "", "new", "outside", "root");
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 7 }), fc.boolean(), async (parts, absolute) => {
      const path = (absolute ? `${root}/` : "") + parts.join("/");
      const kinds = [
        await kindOf(sandbox.readFile(`${path}/secret.txt`)),
        await kindOf(sandbox.writeFile(`${path}/new.txt`, "x")),
        await kindOf(sandbox.remove(`${path}/secret.txt`)),
      ];
      expect(kinds[0]).not.toBe("done");
      expect(await readdir(outside)).toEqual(["secret.txt"]);
      expect((await readdir(directory)).sort()).toEqual(["outside", "root"]);
      await sandbox.exec(["find", ".", "-name", "new*", "-delete"]);
    }),
    { numRuns: 40 },
  );
});

test("a root behind a link is the same root by both paths", async () => {
  await symlink(root, join(directory, "alias"));
  const sandbox = await localBackend.open({ workingDir: join(directory, "alias") });
  onTestFinished(() => sandbox.close());
  expect(sandbox.workingDir).toBe(root);
  await sandbox.writeFile(join(directory, "alias/a.txt"), "a");
  expect((await sandbox.list(join(directory, "alias"))).map(({ path }) => path)).toEqual(["a.txt"]);
  expect(await sandbox.exists(join(root, "a.txt"))).toBe(true);
});

test("a named pipe, which would block a reader, is refused", async () => {
  const sandbox = await open();
  await sandbox.exec(["mkfifo", "pipe"]);
  expect(await kindOf(sandbox.readFile("pipe"))).toBe("os_error");
  expect(await kindOf(sandbox.writeFile("pipe", "x"))).toBe("os_error");
  expect((await sandbox.list())[0]).toMatchObject({ path: "pipe", type: "other" });
});

test("a directory that is replaced by a link between the check and the use does not lead outside", async (context) => {
  if (process.platform !== "linux") skipBecause(context, "only Linux names open directories");
  for (const each of [outside, join(root, "folder")]) {
    await mkdir(join(each, "inner"), { recursive: true });
    await writeFile(join(each, "inner/file.txt"), each === outside ? "secret" : "inside");
  }
  const confinement = await Confinement.create(root, []);
  const swap = async (): Promise<void> => {
    await rename(join(root, "folder"), join(root, "aside"));
    await symlink(outside, join(root, "folder"));
  };
  const back = async (): Promise<void> => {
    await rm(join(root, "folder"));
    await rename(join(root, "aside"), join(root, "folder"));
  };
  // Replaces the directory between the check and the use, the worst case of a race.
  const exchange = (find: "resolve" | "resolveItem") => async (path: string) => {
    const realPath = await confinement[find](path);
    await swap();
    return realPath;
  };
  const files = new ConfinedFiles(
    Object.create(confinement, {
      resolve: { value: exchange("resolve") },
      resolveItem: { value: exchange("resolveItem") },
    }) as Confinement,
  );
  for (const use of [
    () => files.read("folder/inner/file.txt"),
    () => files.write("folder/inner/file.txt", "x"),
    () => files.write("folder/inner/deep/er.txt", "x"),
    () => files.remove("folder/inner/file.txt"),
    () => files.list("folder/inner", {}),
    () => files.pinDirectory("folder/inner"),
  ]) {
    expect(await kindOf(use())).toBe("not_permitted");
    await back();
  }
  expect((await readdir(outside, { recursive: true })).sort()).toEqual(["inner", "inner/file.txt", "secret.txt"]);
  expect(await readFile(join(outside, "inner/file.txt"), "utf8")).toBe("secret");
});

test("a file that is replaced by a link between the check and the use is not followed", async () => {
  const confinement = await Confinement.create(root, []);
  const files = new ConfinedFiles(
    Object.create(confinement, {
      resolve: {
        value: async (path: string) => {
          const realPath = await confinement.resolve(path);
          await rm(realPath);
          await symlink(join(outside, "secret.txt"), realPath);
          return realPath;
        },
      },
    }) as Confinement,
  );
  await writeFile(join(root, "file.txt"), "inside");
  expect(await kindOf(files.read("file.txt"))).toBe("not_permitted");
  await rm(join(root, "file.txt"));
  await writeFile(join(root, "file.txt"), "inside");
  await kindOf(files.write("file.txt", "x"));
  expect(await readFile(join(outside, "secret.txt"), "utf8")).toBe("secret");
});

test("a process that keeps replacing directories by links never makes us read, write or remove a file outside", async () => {
  const sandbox = await open();
  await sandbox.exec("mkdir folder; echo inside > folder/secret.txt");
  const controller = new AbortController();
  const program = `while :; do mv folder aside; ln -s ${outside} folder; rm folder; mv aside folder; done`;
  const racing = sandbox.exec(program, { signal: controller.signal });
  racing.catch(() => {});
  for (let round = 0; round < 150; round++) {
    const bytes = await sandbox.readFile("folder/secret.txt").catch(() => null);
    if (bytes !== null) expect(new TextDecoder().decode(bytes)).not.toBe("secret");
    await sandbox.writeFile("folder/secret.txt", "mine").catch(() => {});
    await sandbox.remove("folder/secret.txt").catch(() => {});
  }
  controller.abort(new Error("stop"));
  await expect(racing).rejects.toThrow("stop");
  expect(await readFile(join(outside, "secret.txt"), "utf8")).toBe("secret");
  expect(await readdir(outside)).toEqual(["secret.txt"]);
});
