import { fileBlobs, s3Blobs } from "skein/blobs";
import { openJsonlStore } from "skein/jsonl";
import { openSqliteStore } from "skein/sqlite";
import { openAt } from "../faults/programs/open-at.mjs";

/**
 * Opens a store with its blobs in itself, or where the options of `fileBlobs` or `s3Blobs` say.
 * @param {string} address
 * @param {string} blobs empty, `files:<directory>`, or `s3:<options as JSON>`
 * @returns {Promise<import("skein").SessionStore>}
 */
export async function openWithBlobs(address, blobs) {
  if (blobs === "") return openAt(address);
  const [url = ""] = address.split("#");
  const place = blobs.slice(blobs.indexOf(":") + 1);
  const opened = blobs.startsWith("files:") ? fileBlobs(place) : s3Blobs(JSON.parse(place));
  return url.startsWith("jsonl:")
    ? openJsonlStore({ directory: url.slice("jsonl:".length), blobs: opened })
    : openSqliteStore({ path: url.slice("sqlite:".length), create: true, blobs: opened });
}

/** The root session of a session of this trial. @param {string} id */
export function rootOf(id) {
  return id.split(".")[0] ?? id;
}

/** Sizes below and above one chunk of a database. */
const sizes = [5_000, 40_000, 200_000, 1_300_000];

/** The same bytes for the same number. @param {number} number */
export function pictureOf(number) {
  return filledWith(`picture-${number}-of-a-session `, sizes[number % sizes.length] ?? 5_000);
}

/** The word in each picture of a session that is erased. @param {string} id */
export function wordOf(id) {
  // Its length is a multiple of three, so that it has one form in base64.
  return `quetzal-${id}-coatl`.padEnd(60, "-");
}

/** Bytes that only one session has. @param {string} id */
export function secretOf(id) {
  return filledWith(wordOf(id), id.length % 3 === 0 ? 2_600_000 : 60_000);
}

/**
 * @param {string} text
 * @param {number} length
 */
function filledWith(text, length) {
  return Buffer.from(text.repeat(Math.ceil(length / text.length)).slice(0, length));
}
