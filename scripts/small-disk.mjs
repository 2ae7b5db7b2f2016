import { execFileSync } from "node:child_process";
import { readFileSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accountWithoutRights } from "./other-account.mjs";

const checkMsMax = 10_000;

/**
 * Creates the file that fills the disk, which only a user of the disk may do, and runs the server. Restarts the server
 * when it ends by itself, as a process manager in production does, and retries for 20 seconds, as the disk may be full.
 */
const keeper = `
  : >"$0"
  tries=0
  while [ $tries -lt 200 ]; do "$@"; tries=$((tries + 1)); sleep 0.1; done`;

/**
 * A file system in memory for one server, with a fixed size; it is deleted when the server ends.
 * @typedef {object} SmallDisk
 * @property {(directory: string, command: readonly string[]) => readonly string[]} hold returns the command that runs a
 * server with this disk mounted at a directory
 * @property {(freeBytes: number) => void} fill fills the disk except for the given bytes, once the server runs
 * @property {() => void} makeRoom empties it again
 */

/** Why a small disk is not available; null if it is. */
export function smallDiskMissing() {
  if (process.platform !== "linux") return "only Linux has private file systems for programs";
  try {
    const trial = ["--dev-bind", "/", "/", "--size", "4096", "--tmpfs", "/tmp", "--unshare-pid", "true"];
    execFileSync("bwrap", trial, { ...accountWithoutRights(), cwd: "/", stdio: "ignore", timeout: checkMsMax });
    return null;
  } catch {
    return "bubblewrap is not installed, or does not work, on this machine";
  }
}

/**
 * Creates a small disk with bubblewrap, which needs no special rights.
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
      // When the first process of these namespaces ends, all others end and no shared memory is left.
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
