// Calls functions, classes and methods of the package with missing and wrong arguments, and writes down each call that ended with
// anything else than a result or an error of ours. It acts in the current directory, which must be a temporary one.
import { writeFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { SessionError } from "skein";
import { ClientError } from "skein/client";
import { makers } from "./values-with-methods.mjs";

/** @typedef {{ call: string, how: string, error: string, at: string }} Failure */

const [, , namesText = "[]", reportPath = ""] = process.argv;
/** @type {{ subpath: string, name: string, kind: string }[]} */
const names = JSON.parse(namesText);
const ANSWER_MS_MAX = 10_000;

/** @type {unknown[][]} */
const wrong = [
  [],
  [{}],
  [null],
  [42],
  ["wrong"],
  [[]],
  [true],
  [() => undefined],
  [{ wrong: 1 }],
  [[null]],
  [["wrong"]],
  [null, null],
  [{}, {}],
  [{}, null],
  ["wrong", null],
  ["wrong", {}],
  ["wrong", "wrong"],
  ["wrong", { wrong: 1 }],
  [[], {}],
  [{}, "wrong"],
  [{}, "wrong", null],
  [{}, {}, {}],
  ["wrong", {}, {}],
  ["wrong", "wrong", "wrong"],
  ["wrong", "wrong", "wrong", "wrong"],
];

/** @type {Failure[]} */
const failures = [];
let call = "";

/** @type {(error: unknown, how: string) => void} */
function report(error, how) {
  if (error instanceof SessionError || error instanceof ClientError) return;
  const { name = "", message = String(error), stack = "" } = error instanceof Error ? error : {};
  const at = stack.split("\n").find((line) => line.includes("/dist/")) ?? "";
  failures.push({ call, how, error: `${name}: ${message}`.slice(0, 160), at: at.trim() });
}

process.on("unhandledRejection", (error) => report(error, "is not handled"));
process.on("uncaughtException", (error) => report(error, "is not caught"));

/** Awaits the result of a call, and closes it; not longer than `ANSWER_MS_MAX`. @type {(value: any) => Promise<void>} */
async function settle(value) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return;
  const late = Symbol("late");
  const timer = new AbortController();
  const limit = wait(ANSWER_MS_MAX, late, { signal: timer.signal }).catch(() => undefined);
  const given = await Promise.race([finish(value), limit]);
  timer.abort();
  if (given === late) failures.push({ call, how: "gives no answer", error: "", at: "" });
}

/** @type {(value: any) => Promise<void>} */
async function finish(value) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return;
  if (typeof value.then === "function") {
    await finish(await value);
  } else if (typeof value.next === "function") {
    await value.next();
    await value.return?.();
  } else if (typeof value[Symbol.asyncDispose] === "function") {
    await value[Symbol.asyncDispose]();
  } else if (typeof value.close === "function") {
    await value.close();
  }
}

/** @type {(value: unknown) => string} */
const show = (value) => (typeof value === "function" ? "() => undefined" : JSON.stringify(value));

/** @type {Record<string, () => Promise<object>>} */
const values = { ...makers };
for (const { subpath, name, kind } of names) {
  const made = (await import(subpath))[name];
  // A class that is exported as a type only.
  if (made === undefined) continue;
  if (kind === "class") values[name] = async () => made;
  for (const given of wrong) {
    call = `${subpath}: ${kind === "class" ? "new " : ""}${name}(${given.map(show).join(", ")})`;
    try {
      await settle(kind === "class" ? new made(...given) : made(...given));
    } catch (error) {
      report(error, "fails");
    }
  }
}
for (const [name, make] of Object.entries(values)) {
  for (const method of methodsOf(await make())) {
    for (const given of wrong) {
      call = `${name}.${method}(${given.map(show).join(", ")})`;
      const value = /** @type {any} */ (await make());
      try {
        await settle(value[method](...given));
      } catch (error) {
        report(error, "fails");
      }
    }
  }
}
writeFileSync(reportPath, JSON.stringify(failures));
process.exit(0);

/** The names of the public methods of a value. @param {any} value */
function methodsOf(value) {
  const names = new Set();
  for (
    let at = value;
    at !== null && at !== Object.prototype && at !== Function.prototype;
    at = Object.getPrototypeOf(at)
  ) {
    for (const [name, { value: held }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (name !== "constructor" && typeof held === "function") names.add(name);
    }
  }
  return names;
}
