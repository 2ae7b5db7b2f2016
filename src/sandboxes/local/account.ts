import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { type FileOwner, PinnedDirectory } from "./pinned-directory.ts";

/** User ids that no account of a machine has: neither distributions nor systemd's containers use this range. */
const UIDS_FROM = 0x7000_0000;
const UIDS = 0x0fff_ffff;
/** The group for a directory of root's group, which commands are not to be in. */
const NO_GROUP = 65_534;
/** What the account of a directory is called where the machine has no name for it. */
const ACCOUNT_NAME = "skein-sandbox";

/** A new account for the commands of one directory. It is nothing but a number that no one else has. */
export function newAccount(): FileOwner {
  const uid = UIDS_FROM + randomInt(UIDS);
  return { uid, gid: uid };
}

/** Gives a directory that was just made to an account of its own; false where the system does not let root do that. */
export async function giveAway(directory: string): Promise<boolean> {
  try {
    await using pinned = await PinnedDirectory.open(await realpath(directory));
    await pinned.setOwner(newAccount());
    return true;
  } catch {
    return false;
  }
}

/**
 * The account that the files of a directory are for, where this program is root and the directory is not root's; else null.
 * It is read from the directory each time, so that it is the same for every sandbox and every process that uses it.
 */
export async function accountOf(directory: string): Promise<FileOwner | null> {
  if (!isRoot()) return null;
  const { uid, gid } = await stat(directory);
  return uid === 0 ? null : { uid, gid: gid === 0 ? NO_GROUP : gid };
}

/** Whether this program may give files to other accounts. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** How an account is called: as the machine has it, or by the name that its commands find. */
export function nameOf({ uid }: FileOwner): string {
  return lineOf(uid)?.split(":")[0] ?? ACCOUNT_NAME;
}

/** The account files of the machine with a line for an account that they lack; null when they have it, or are missing. */
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
