import type { JsonObject } from "../../internal/json.ts";
import type { ThinkingLevel } from "./entry.ts";

/** A tool as it is described to a model. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
}

/** Which calls a model must make: any or none as it chooses, none, at least one, or a call of the named tool. */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** The own fields of a `setup`: the parts of an agent's requests other than messages. */
export type Setup = {
  /** The agent's name. */
  readonly agent: string;
  /** The system prompt; left out if there is none, or if only its digest is recorded. */
  readonly instructions?: string;
  /** A digest of a system prompt whose text is not recorded. */
  readonly instructionsDigest?: string;
  /** The tools in the order in which they are sent. */
  readonly tools?: readonly ToolSchema[];
  readonly thinkingLevel?: ThinkingLevel;
  /** The tool choice as the option says it; later rounds of a run may send none. */
  readonly toolChoice?: ToolChoice;
  /** JSON Schema of the structured output. */
  readonly output?: JsonObject;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly stop?: readonly string[];
  /** A digest of the provider options, which may contain keys. */
  readonly providerOptionsDigest?: string;
  /** How long the provider was asked to keep what it caches of the requests, in milliseconds; left out if it is not known. */
  readonly cacheLifetimeMs?: number;
  /** Functions of the program prepare the messages of each request; what they change is not recorded. */
  readonly transformed?: boolean;
  /** For each field that equals that of an earlier `setup` on the path: the id of the entry that contains it. */
  readonly unchanged?: { readonly [Field in SharedField]?: string };
};

/** A field of a setup that may be large; an unchanged one is stored once, and later setups refer to it. */
export type SharedField = "instructions" | "tools" | "output";

/** Every field that a setup can share with an earlier one. */
export const SHARED_FIELDS: readonly SharedField[] = ["instructions", "tools", "output"];
