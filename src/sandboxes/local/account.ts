import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { type FileOwner, PinnedDirectory } from "./pinned-directory.ts";

/** A range of user ids that neither distributions nor systemd's containers use. */
const UIDS_FROM = 0x7000_0000;
const UIDS = 0x0fff_ffff;
/** The group used instead of root's group, which commands must not be in. */
const NO_GROUP = 65_534;
/** The name of an account that is not in the machine's account files. */
const ACCOUNT_NAME = "skein-sandbox";

/** A new account for the commands of one directory: just a random, unused number. */
export function newAccount(): FileOwner {
  const uid = UIDS_FROM + randomInt(UIDS);
  return { uid, gid: uid };
}

/** Changes the owner of a new directory to a new account; false if the system does not permit it. */
export async function assignNewOwner(directory: string): Promise<boolean> {
  try {
    await using pinned = await PinnedDirectory.open(await realpath(directory));
    await pinned.setOwner(newAccount());
    return true;
  } catch {
    return false;
  }
}

/**
 * The owner of a directory, if this program runs as root and the owner is not root; else null. It is read from the directory
 * each time, so that all sandboxes and processes that use the directory agree on it.
 */
export async function accountOf(directory: string): Promise<FileOwner | null> {
  if (!isRoot()) return null;
  const { uid, gid } = await stat(directory);
  return uid === 0 ? null : { uid, gid: gid === 0 ? NO_GROUP : gid };
}

/** Whether this program runs as root, and may change the owners of files. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The name of an account: from the machine's account files, or the default name that its commands see. */
export function nameOf({ uid }: FileOwner): string {
  return lineOf(uid)?.split(":")[0] ?? ACCOUNT_NAME;
}

/** The machine's account files with a line added for this account; null if they contain it already, or do not exist. */
export function accountFiles({ uid, gid }: FileOwner, home: string): { passwd: string; group: string } | null {
  try {
    if (lineOf(uid) !== null) return null;
    const passwd = readFileSync("/etc/passwd", "utf8");
    const group = readFileSync("/etc/group", "utf8");
    const fields = [ACCOUNT_NAME, "x", uid, gid, "", /[:\n]/.test(home) ? "/" : home, "/bin/sh"];
    return {
      passwd: `${passwd.trimEnd()}\n${fields.join(":")}`,
      group: `${group.trimEnd()}\n${ACCOUNT_NAME}:x:${gid}:`,
    };
  } catch {
    return null;
  }
}

function lineOf(uid: number): string | null {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return lines.find((line) => line.split(":")[2] === `${uid}`) ?? null;
  } catch {
    return null;
  }
}
