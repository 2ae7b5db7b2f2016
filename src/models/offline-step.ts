import { dropEnd } from "../internal/trim-text.ts";
import type { JsonValue } from "../internal/json.ts";
import { argumentText, type Literal, soleLiteral, unmask } from "./offline-literals.ts";

/** One call to make: the name of a tool, and the arguments known so far. */
export interface OfflineStep {
  readonly tool: string;
  readonly values: Readonly<Record<string, JsonValue>>;
  /** The user's sentence, to quote in an answer. */
  readonly said: string;
}

type Values = Readonly<Record<string, string>>;

/** A phrase that asks for a tool. `values` reads the groups of `pattern`, and returns null if they are not usable. */
interface Phrase {
  readonly tool: string;
  readonly pattern: RegExp;
  values(groups: Readonly<Record<string, string | undefined>>, literals: readonly Literal[]): Values | null;
}

/** Verbs that begin a request; a sentence may be split before them. */
export const REQUEST_VERBS =
  "(?:please\\s+)?(?:list|read|show|open|print|write|save|put|create|append|edit|replace|change|run|execute|evaluate|check|does|is there|call|use)";

const POLITE =
  /^(?:(?:please|now|also|first|next|finally|and|ok|okay|hi|hello|can you|could you|would you|will you|i want you to|go ahead and)[,!]?\s+)+/i;
const LANGUAGES = "python3?|py|javascript|js|node|typescript|ts|bash|shell|sh|ruby";
const NO_PATHS = new Set(
  "it this that them these those me us on more again everything all something here there".split(" "),
);
const THE_ROOT = /^(?:(?:the|this|my|our)\s+)?(?:workspace|folder|directory|sandbox|here|there|root)$/i;

const PHRASES: readonly Phrase[] = [
  {
    tool: "write_workspace_file",
    pattern:
      /^(?:write|save|put)(?:\s+(?:this|it|the following))?\s+(?:to|into|in|as)\s+(?<path>[^\s:]+)\s*:\s*(?<content>.+)$/i,
    values: written,
  },
  {
    tool: "write_workspace_file",
    pattern:
      /^(?:write|save|put)\s+(?:the\s+(?:text|words?)\s+)?(?<content>.+)\s+(?:to|into|in|as)\s+(?:(?:a|the)\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?<path>\S+)$/i,
    values: written,
  },
  {
    tool: "write_workspace_file",
    pattern:
      /^(?:create|make|write)\s+(?:(?:a|the)\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?<path>\S+)\s+(?:with|containing|saying|that\s+says)(?:\s+the)?(?:\s+(?:text|contents?))?:?\s+(?<content>.+)$/i,
    values: written,
  },
  {
    tool: "write_workspace_file",
    pattern: /^(?:create|make)\s+(?:an?\s+)?(?:new\s+)?empty\s+file\s+(?:called\s+|named\s+)?(?<path>\S+)$/i,
    values: ({ path = "" }, literals) => written({ path, content: "" }, literals),
  },
  {
    tool: "run_shell_command",
    pattern: /^append\s+(?<content>.+)\s+to\s+(?:the\s+)?(?:file\s+)?(?<path>\S+)$/i,
    values: (groups, literals) => {
      const values = written(groups, literals);
      if (values === null) return null;
      return { command: `printf '%s\\n' ${shellQuoted(values.content ?? "")} >> ${shellQuoted(values.path ?? "")}` };
    },
  },
  {
    tool: "edit_workspace_file",
    pattern: /^replace\s+(?<from>.+)\s+(?:with|by)\s+(?<to>.+)\s+in\s+(?:the\s+)?(?:file\s+)?(?<path>\S+)$/i,
    values: edited,
  },
  {
    tool: "edit_workspace_file",
    pattern: /^change\s+(?<from>.+)\s+(?:to|into)\s+(?<to>.+)\s+in\s+(?:the\s+)?(?:file\s+)?(?<path>\S+)$/i,
    values: edited,
  },
  {
    tool: "edit_workspace_file",
    pattern:
      /^(?:edit|update|in)\s+(?:the\s+)?(?:file\s+)?(?<path>[^\s,:]+)[,:]?\s+(?:(?:and|to|by|so\s+that\s+you)\s+)?(?:replace|replacing|change|changing)\s+(?<from>.+)\s+(?:with|by|to|into)\s+(?<to>.+)$/i,
    values: edited,
  },
  {
    tool: "workspace_path_exists",
    pattern: /^does\s+(?<path>.+?)\s+exist$/i,
    values: pathOnly,
  },
  {
    tool: "workspace_path_exists",
    pattern:
      /^is\s+there\s+(?:(?:an?|the)\s+)?(?:(?:file|folder|directory)\s+(?:called\s+|named\s+)?(?<path>\S+)|(?<bare>\S*[/.\ue001]\S*))$/i,
    values: ({ path, bare }, literals) => pathOnly({ path: path ?? bare }, literals),
  },
  {
    tool: "workspace_path_exists",
    pattern: /^(?:check|see|tell\s+me)\s+(?:whether|if|that)\s+(?<path>.+?)\s+exists?$/i,
    values: pathOnly,
  },
  {
    tool: "list_workspace_files",
    pattern:
      /^(?:list|show|print|give)(?:\s+me)?(?:\s+all)?(?:\s+(?:the|my|of\s+the))?(?:\s+workspace)?\s+(?:files|folder|directory|workspace)(?:\s+(?:in|of|under|inside|at)\s+(?<path>.+))?$/i,
    values: listed,
  },
  {
    tool: "list_workspace_files",
    pattern:
      /^(?:what|which)\s+files\s+(?:are|exist|do\s+(?:you|we|i)\s+have)(?:\s+there)?(?:\s+(?:in|under|inside|at)\s+(?<path>.+))?$/i,
    values: listed,
  },
  {
    tool: "list_workspace_files",
    pattern: /^list\s+(?<path>\S*[/.\ue001]\S*)$/i,
    values: listed,
  },
  {
    tool: "run_code",
    pattern: new RegExp(
      `^(?:run|execute|evaluate)\\s+(?:(?:this|the|some|the\\s+following)\\s+)?(?<language>${LANGUAGES})(?:\\s+(?:code|program|script|snippet))?\\s*(?::\\s*(?<code>.+)|(?<quoted>\\ue000\\d+\\ue001))$`,
      "i",
    ),
    values: coded,
  },
  {
    tool: "run_code",
    pattern:
      /^(?:run|execute|evaluate)\s+(?:this|the|the\s+following)\s+(?:code|program|script|snippet)\s*:?\s*(?<quoted>\ue000\d+\ue001)$/i,
    values: coded,
  },
  {
    tool: "run_shell_command",
    pattern: /^(?:run|execute)\s+(?:(?:the|this)\s+)?(?:shell\s+)?command\s*:?\s+(?<command>.+)$/i,
    values: commanded,
  },
  {
    tool: "run_shell_command",
    pattern: /^(?:run|execute)\s*:?\s+(?!(?:the|this|that|it|my|your|our|all|some|an?)\b)(?<command>.+)$/i,
    values: commanded,
  },
  {
    tool: "read_workspace_file",
    pattern: /^(?:read|show|open|print|display|cat)(?:\s+me)?\s+(?<path>.+)$/i,
    values: pathOnly,
  },
  {
    tool: "read_workspace_file",
    pattern: /^what(?:\s+is|'s)\s+in\s+(?<path>.+)$|^what\s+does\s+(?<subject>.+?)\s+(?:say|contain)$/i,
    values: ({ path, subject }, literals) => pathOnly({ path: path ?? subject }, literals),
  },
];

/** Parses a sentence as a call of a tool; null if no phrase matches. */
export function parseStep(sentence: string, literals: readonly Literal[]): OfflineStep | null {
  const text = sentence.trim().replace(POLITE, "").trim();
  const said = unmask(sentence.trim(), literals);
  const verbatim = /^\$\s+(?<command>.+)$/.exec(text)?.groups?.command;
  if (verbatim !== undefined)
    return { tool: "run_shell_command", values: { command: unmask(verbatim, literals) }, said };
  for (const ending of [text, withoutEnding(text)]) {
    for (const { tool, pattern, values } of PHRASES) {
      const groups = pattern.exec(ending)?.groups;
      const read = groups === undefined ? null : values(groups, literals);
      if (read !== null) return { tool, values: read, said };
    }
  }
  return null;
}

/** A sentence without a final "please" and without its final punctuation. */
function withoutEnding(text: string): string {
  const asked = /please[.!]?$/i.exec(text);
  const before = asked === null ? text : text.slice(0, asked.index).trimEnd();
  const polite = asked !== null && before.length < asked.index ? before.replace(/,$/, "") : text;
  const bare = dropEnd(polite, /[.!?]/).trimEnd();
  return /[\w/)\ue001]$/.test(bare) && bare.length < polite.trimEnd().length ? bare : polite;
}

/** The path in some words; null if there is none. */
function pathOf(words: string | undefined, literals: readonly Literal[]): string | null {
  const named = (words ?? "")
    .trim()
    .replace(/^(?:the\s+)?contents?\s+of\s+/i, "")
    .replace(/^(?:the\s+)?(?:file|folder|directory)\s+|^the\s+(?=\S*[/.\ue001]\S)/i, "");
  const quoted = soleLiteral(named, literals);
  if (quoted !== null) return quoted.says;
  const path = named.replace(/(?<=[\w*/])[.,!?:;]+$/, "");
  return path === "" || /[\s\ue000]/.test(path) || NO_PATHS.has(path.toLowerCase()) ? null : path;
}

function pathOnly(groups: Readonly<Record<string, string | undefined>>, literals: readonly Literal[]): Values | null {
  const path = pathOf(groups.path, literals);
  return path === null ? null : { path };
}

function listed({ path }: Readonly<Record<string, string | undefined>>, literals: readonly Literal[]): Values | null {
  return path === undefined || THE_ROOT.test(dropEnd(path, /[.?!]/)) ? {} : pathOnly({ path }, literals);
}

function written(groups: Readonly<Record<string, string | undefined>>, literals: readonly Literal[]): Values | null {
  const path = pathOf(groups.path, literals);
  return path === null ? null : { path, content: argumentText(groups.content ?? "", literals) };
}

function edited(groups: Readonly<Record<string, string | undefined>>, literals: readonly Literal[]): Values | null {
  const path = pathOf(groups.path, literals);
  if (path === null) return null;
  return {
    path,
    old_text: argumentText(groups.from ?? "", literals),
    new_text: argumentText(groups.to ?? "", literals),
  };
}

function coded(groups: Readonly<Record<string, string | undefined>>, literals: readonly Literal[]): Values | null {
  const code = groups.code ?? groups.quoted ?? "";
  const language = groups.language ?? soleLiteral(code, literals)?.language ?? "";
  return language === "" ? null : { language: language.toLowerCase(), code: argumentText(code, literals) };
}

function commanded(
  { command = "" }: Readonly<Record<string, string | undefined>>,
  literals: readonly Literal[],
): Values {
  // Drops a full stop at the end of the sentence, but not the one in `ls .`.
  return { command: argumentText(command.replace(/(?<=\w)\.$/, ""), literals) };
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
