import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { withLock } from "./lock.mjs";
import { root, SetupError } from "./run.mjs";

/** The account `nobody` of Linux, which owns no files. */
const nobody = 65534;
const copiesRecord = join(root, ".cache/copies");
const everyoneReads = 0o004;
const everyoneEnters = 0o001;
const othersWrite = 0o022;

/**
 * The account for programs without rights: `nobody` if this process is root, else the current one.
 * @returns {{ uid?: number, gid?: number }}
 */
export function accountWithoutRights() {
  return process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
}

/**
 * The folder for temporary files that every account of the tests can access: the usual one, unless this process is root
 * and only root may enter that.
 * @returns {string}
 */
export function reachableTmpdir() {
  const usual = tmpdir();
  if (accountWithoutRights().uid === undefined) return usual;
  const found = [usual, "/tmp", "/var/tmp"].find((folder) => existsSync(folder) && isReachable(folder, everyoneEnters));
  if (found !== undefined) return found;
  throw new SetupError("No folder for temporary files is accessible to other accounts; set TMPDIR to one that is.");
}

/**
 * A folder with the same files that the account without rights can read: the folder itself if it can, else a cached
 * copy that only this account can write to.
 * @param {string} name of the copy; must change with every version of the files
 * @param {string} folder
 * @param {string} program the program in it that the account must be able to run
 * @returns {Promise<string>}
 */
export async function reachableFolder(name, folder, program) {
  if (accountWithoutRights().uid === undefined) return folder;
  if (isReachable(join(folder, program), everyoneReads | everyoneEnters)) return folder;
  const count = countFiles(folder);
  // A cleaner of temporary files may have deleted some of the files.
  const isWhole = (/** @type {string} */ copy) => existsSync(copy) && countFiles(copy) === count;
  const known = knownCopies();
  if (known !== null && isWhole(join(known, name))) return join(known, name);
  return withLock(`copy-${name}`, async () => {
    const copy = join(knownCopies() ?? makeCopies(), name);
    if (isWhole(copy)) return copy;
    const made = `${copy}.part`;
    for (const old of [made, copy]) rmSync(old, { recursive: true, force: true });
    const run = promisify(execFile);
    await run("cp", ["-RP", folder, made]);
    await run("chmod", ["-R", "u+rwX,go+rX,go-w", made]);
    renameSync(made, copy);
    return copy;
  });
}

/**
 * The folder with the copies of this checkout; null if there is none yet. Its random name is recorded in `.cache`, so
 * that no other account can create it in advance.
 */
function knownCopies() {
  if (!existsSync(copiesRecord)) return null;
  const known = readFileSync(copiesRecord, "utf8");
  return isOwn(known) && isReachable(known, everyoneEnters) ? known : null;
}

function makeCopies() {
  const made = mkdtempSync(join(reachableTmpdir(), "skein-copies-"));
  chmodSync(made, 0o755);
  writeFileSync(copiesRecord, made);
  return made;
}

/** @param {string} folder */
function isOwn(folder) {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  return stats?.isDirectory() === true && stats.uid === process.getuid?.() && (stats.mode & othersWrite) === 0;
}

/**
 * Whether every account may enter all folders above a path, and has the given rights on it.
 * @param {string} path
 * @param {number} rights
 */
function isReachable(path, rights) {
  const real = realpathSync(path);
  if ((statSync(real).mode & rights) !== rights) return false;
  for (let folder = dirname(real); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & everyoneEnters) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** @param {string} folder */
function countFiles(folder) {
  return readdirSync(folder, { recursive: true }).length;
}
