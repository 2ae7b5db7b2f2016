import { z } from "zod";
import type { Entry } from "../../../session/log/entry.ts";
import { entryRules, type FieldSchema, messageRules } from "../../../session/log/entry-check.ts";
import type { AssistantMessage, Message, ToolMessage } from "../../../session/message.ts";
import type { Page } from "../../wire.ts";
import { content, type Loose, named, nameVariants, toolCall } from "../schema.ts";
import { usage } from "./wire-schemas.ts";

const text = z.string();

/** Turns the field rules that check entries and messages on append into schemas. */
function shapeOf(rules: Readonly<Record<string, FieldSchema>>): z.core.$ZodLooseShape {
  const fields = Object.entries(rules).map(([field, { schema, nullable = false, optional = false }]) => {
    const value = typeof schema === "string" ? PARTS[schema]() : z.unknown().meta(schema);
    const given = nullable ? value.nullable() : value;
    return [field, optional ? given.optional() : given];
  });
  return Object.fromEntries(fields) as z.core.$ZodLooseShape;
}

const PARTS: Readonly<Record<Extract<FieldSchema["schema"], string>, () => z.ZodType>> = {
  content: () => content,
  message: () => message,
  requestMessages: () => z.array(z.object({ role: z.enum(["system", "user", "assistant"]), content })).min(1),
  toolCalls: () => z.array(toolCall),
  usage: () => usage,
};

const system = z.object({ role: z.literal("system"), ...shapeOf(messageRules.system) });
const user = z.object({ role: z.literal("user"), ...shapeOf(messageRules.user) });
const assistant = z.object({ role: z.literal("assistant"), ...shapeOf(messageRules.assistant) });
const tool = z.object({ role: z.literal("tool"), ...shapeOf(messageRules.tool) });

/** One message of a conversation. */
export const message: z.ZodType<Message> = named<Message>(
  "Message",
  nameVariants("Message", z.discriminatedUnion("role", [system, user, assistant, tool])) as unknown as z.ZodType<
    Loose<Message>
  >,
);

/** A message of a model. */
export const assistantMessage: z.ZodType<AssistantMessage> = assistant as unknown as z.ZodType<AssistantMessage>;

/** A message with the result of a tool. */
export const toolMessage: z.ZodType<ToolMessage> = tool as unknown as z.ZodType<ToolMessage>;

const stamp = {
  id: text,
  parentId: text.nullable(),
  timestamp: text,
  seq: z.int().min(0),
  by: text.optional(),
  run: text.optional(),
  inherited: z.literal(true).optional(),
};
const variants = Object.entries(entryRules).map(
  ([type, rules]): z.ZodObject => z.object({ type: z.literal(type), ...stamp, ...shapeOf(rules) }),
);

/** One record of a log. */
export const entry: z.ZodType<Entry> = named<Entry>(
  "Entry",
  nameVariants(
    "Entry",
    z.discriminatedUnion("type", variants as [z.ZodObject, ...z.ZodObject[]]),
  ) as unknown as z.ZodType<Loose<Entry>>,
);

/** A page of entries. */
export const entryPage: z.ZodType<Page<Entry>> = named<Page<Entry>>(
  "EntryPage",
  z.object({ items: z.array(entry), next: text.nullable() }),
);
