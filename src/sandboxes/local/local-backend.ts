import { createHash } from "node:crypto";
import { mkdir, realpath, stat } from "node:fs/promises";
import { PRIVATE_DIRECTORY } from "../../internal/private-file.ts";
import type { JsonObject } from "../../internal/json.ts";
import { show } from "../../session/errors.ts";
import {
  type FileChanges,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxReach,
  type SandboxSpec,
} from "../../session/sandbox/sandbox.ts";
import { accountOf, assignNewOwner, nameOf } from "./account.ts";
import { checkSpec } from "./check-spec.ts";
import { Confinement } from "./confinement.ts";
import { wrapFailure, failureCode, isMissing, onPath } from "./file-failure.ts";
import { hostEnvironment } from "./host-environment.ts";
import { findIsolation, isIsolated } from "./isolation.ts";
import { LocalSandbox, findLanguages } from "./local-sandbox.ts";
import type { FileOwner } from "./pinned-directory.ts";
import { compareSnapshots, listSnapshots, removeSnapshot } from "./snapshot-store.ts";
import {
  findTemporaryDirectory,
  leaveTemporaryDirectory,
  makeTemporaryDirectory,
  removeTemporaryDirectory,
  type TemporaryDirectory,
  useTemporaryDirectory,
} from "./temporary-directory.ts";

/**
 * Sandboxes on this machine: real processes in a working directory.
 *
 * - Without a `workingDir`, the sandbox creates a temporary directory. It is removed when the last sandbox of this process
 *   that uses it is closed. A given directory is created if its parent exists, and never removed.
 * - Paths of file methods and the working directory of commands are confined. The commands themselves are confined by
 *   isolation, if bubblewrap works, and by limits. Stores of this process are hidden from both.
 * - Commands see a few variables of the host (`PATH`, `HOME`, `LANG` and the like), then `spec.env`, then their own.
 */
export const localBackend: SandboxBackend = {
  async reach(spec: SandboxSpec): Promise<SandboxReach> {
    checkPlatform();
    const checked = checkSpec(spec);
    const { workingDir = null } = checked;
    const directory = workingDir === null ? null : ((await findGiven(workingDir)) ?? workingDir);
    const isolated = await isIsolated(checked);
    return { directory, isolated, network: !isolated || checked.network === true };
  },

  async open(spec: SandboxSpec): Promise<Sandbox> {
    checkPlatform();
    const checked = checkSpec(spec);
    const { workingDir } = checked;
    if (workingDir === undefined) return inTemporaryDirectory(checked, null);
    const root = await onPath(workingDir, () => makeGiven(workingDir, checked));
    return assemble(checked, { id: idOf(root), root }, async () => {});
  },

  async attach(id: string, spec: SandboxSpec): Promise<Sandbox> {
    checkPlatform();
    const checked = checkSpec(spec);
    const { workingDir } = checked;
    if (workingDir === undefined) {
      const found = await findTemporaryDirectory(id);
      if (found === null) throw gone(id);
      return inTemporaryDirectory(checked, found);
    }
    const root = await findGiven(workingDir);
    if (root === null || idOf(root) !== id) throw gone(id);
    return assemble(checked, { id, root }, async () => {});
  },

  listSnapshots,
  async deleteSnapshot(snapshot: JsonObject): Promise<boolean> {
    return removeSnapshot(snapshot);
  },

  async compareSnapshots(from: JsonObject, to: JsonObject): Promise<FileChanges> {
    return compareSnapshots(from, to);
  },

  keepsFiles({ workingDir }: SandboxSpec): boolean {
    return workingDir !== undefined;
  },
};

async function inTemporaryDirectory(spec: SandboxSpec, found: TemporaryDirectory | null): Promise<Sandbox> {
  const directory = found ?? (await wrapFailure("make a directory of its own", makeTemporaryDirectory));
  const { id } = directory;
  try {
    if (found === null) await giveToCommands(directory.root, spec);
    const sandbox = await assemble(spec, directory, () => leaveTemporaryDirectory(id));
    useTemporaryDirectory(id);
    return sandbox;
  } catch (error) {
    // Remove only a directory that was created here: an existing one belongs to someone who may attach again.
    if (found === null) await removeTemporaryDirectory(id);
    throw error;
  }
}

async function assemble(
  spec: SandboxSpec,
  { id, root }: TemporaryDirectory,
  onClose: () => Promise<void>,
): Promise<LocalSandbox> {
  const bubblewrap = await findIsolation(spec);
  if (bubblewrap === null && spec.network === false) {
    throw new SandboxError(
      "unsupported",
      "Only isolation keeps commands from the network, and these are not isolated.",
    );
  }
  const owner = bubblewrap !== null && bubblewrap.setpriv === null ? null : await accountOf(root);
  // Isolated commands have a private /tmp, so variables for other temporary directories of the host do not apply.
  const env = { ...hostEnvironment(), ...(bubblewrap === null ? {} : isolatedEnvironment(owner)), ...spec.env };
  const [languages, confinement] = await Promise.all([
    findLanguages(env),
    Confinement.create(root, spec.allowPaths ?? []),
  ]);
  return new LocalSandbox({ id, spec, confinement, env, languages, bubblewrap, owner, onClose });
}

function isolatedEnvironment(owner: FileOwner | null): Record<string, string> {
  const name = owner === null ? null : nameOf(owner);
  return { TMPDIR: "/tmp", ...(name === null ? {} : { USER: name, LOGNAME: name }) };
}

/**
 * If this program is root, changes the owner of a new directory to a new account, which isolated commands then run as. Not
 * done if the spec allows other paths: these mostly belong to root, and that account could not write them.
 */
async function giveToCommands(root: string, spec: SandboxSpec): Promise<void> {
  const allowsMore = (spec.allowPaths ?? []).length > 0;
  if (!allowsMore && (await findIsolation(spec))?.setpriv) await assignNewOwner(root);
}

async function makeGiven(workingDir: string, spec: SandboxSpec): Promise<string> {
  try {
    await mkdir(workingDir, PRIVATE_DIRECTORY);
    await giveToCommands(workingDir, spec);
  } catch (error) {
    if (failureCode(error) !== "EEXIST") throw error;
  }
  const root = await findGiven(workingDir);
  if (root === null) throw new SandboxError("os_error", `The workingDir ${show(workingDir)} is not a directory.`);
  return root;
}

async function findGiven(workingDir: string): Promise<string | null> {
  try {
    return (await stat(workingDir)).isDirectory() ? await realpath(workingDir) : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** An id derived from a given directory, without revealing its path; `attach` gets the path from the spec and compares. */
function idOf(root: string): string {
  return `directory-${createHash("sha256").update(root).digest("hex").slice(0, 32)}`;
}

function gone(id: string): SandboxError {
  return new SandboxError("file_not_found", `There is no local sandbox ${show(id)} with this spec; open a new one.`);
}

function checkPlatform(): void {
  if (process.platform !== "win32") return;
  throw new SandboxError("unsupported", "The local sandbox needs a POSIX system; use a remote backend on Windows.");
}
