import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ownWordsMax = 100;

/**
 * Stores a session file as a fixture, with neutral paths and without the long texts that programs add.
 * @param {string} path
 * @param {string} target
 * @param {{ home: string, project: string }} place
 */
export function recordSession(path, target, place) {
  writeFileSync(target, neutralText(readFileSync(path, "utf8"), place));
  // Claude Code keeps the sessions of sub-agents in a folder beside the file.
  const beside = path.replace(/\.jsonl$/, "");
  const found =
    beside === path || !existsSync(beside) ? [] : readdirSync(beside, { recursive: true, encoding: "utf8" });
  for (const name of found.filter((each) => each.endsWith(".jsonl")))
    recordSession(join(beside, name), target.replace(/\.jsonl$/, "-sub-agent.jsonl"), place);
}

/**
 * @param {string} text
 * @param {{ home: string, project: string }} place
 */
function neutralText(text, { home, project }) {
  const neutral = text
    .replaceAll(project, "/tmp/project")
    .replaceAll(home, "/tmp/home")
    .replaceAll(project.slice(1), "tmp/project")
    .replaceAll(project.replaceAll(/\W/g, "-"), "-tmp-project");
  if (text.startsWith("{\n")) return `${JSON.stringify(withoutLongTexts(JSON.parse(neutral)), null, 2)}\n`;
  return neutral.replaceAll(/.+/g, (line) => JSON.stringify(withoutLongTexts(JSON.parse(line))));
}

/**
 * @param {unknown} value
 * @returns {unknown}
 */
function withoutLongTexts(value) {
  if (typeof value === "string")
    return value.length > ownWordsMax && !/\bkettle\b|\bshed\b|<command-/.test(value)
      ? "(the program's own words)"
      : value;
  if (Array.isArray(value)) return value.map(withoutLongTexts);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutLongTexts(inner)]));
}
