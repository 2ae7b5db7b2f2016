import { execFileSync } from "node:child_process";
import { readFileSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accountWithoutRights } from "./other-account.mjs";

const checkMsMax = 10_000;

/**
 * Makes the file that takes up the room, which only a user of this disk may, and runs the server. It starts the server
 * again when it ends by itself, as what runs servers in production does, and tries for 20 seconds, as there may be no room.
 */
const keeper = `
  : >"$0"
  tries=0
  while [ $tries -lt 200 ]; do "$@"; tries=$((tries + 1)); sleep 0.1; done`;

/**
 * A file system in memory for one server, with a size that it cannot outgrow; it is gone with the server.
 * @typedef {object} SmallDisk
 * @property {(directory: string, command: readonly string[]) => readonly string[]} hold the command that runs a server
 *   with this disk over a directory
 * @property {(freeBytes: number) => void} fill takes up the room but for so much, once the server runs
 * @property {() => void} makeRoom gives it back
 */

/** Why there is no small disk to be had here, or null when there is one. */
export function smallDiskMissing() {
  if (process.platform !== "linux") return "only Linux gives a program a file system of its own";
  try {
    const trial = ["--dev-bind", "/", "/", "--size", "4096", "--tmpfs", "/tmp", "--unshare-pid", "true"];
    execFileSync("bwrap", trial, { ...accountWithoutRights(), cwd: "/", stdio: "ignore", timeout: checkMsMax });
    return null;
  } catch {
    return "bubblewrap is not installed, or does not work, on this machine";
  }
}

/**
 * Makes a small disk out of bubblewrap, which needs no rights for it.
 * @param {number} bytesMax
 * @returns {SmallDisk}
 */
export function createSmallDisk(bytesMax) {
  let mounted = "";
  const ballast = () => {
    const { "child-pid": pid } = JSON.parse(readFileSync(`${mounted}.json`, "utf8"));
    return join(`/proc/${pid}/root`, mounted, "ballast");
  };
  return {
    hold: (directory, command) => {
      mounted = directory;
      const disk = ["--dev-bind", "/", "/", "--size", String(bytesMax), "--tmpfs", directory];
      // All that runs in these namespaces ends with its first process, and leaves no shared memory.
      const ends = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"];
      const told = ["sh", "-c", 'exec 3>"$0"; exec bwrap --info-fd 3 "$@"', `${directory}.json`];
      return [...told, ...disk, ...ends, "--", "sh", "-c", keeper, join(directory, "ballast"), ...command];
    },
    fill: (freeBytes) => {
      const path = ballast();
      const { bavail, bsize } = statfsSync(path);
      writeFileSync(path, Buffer.alloc(Math.max(0, bavail * bsize - freeBytes)), { flag: "a" });
    },
    makeRoom: () => truncateSync(ballast()),
  };
}
