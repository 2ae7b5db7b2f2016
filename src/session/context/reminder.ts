import type { Message } from "../message.ts";

/** The type of the `custom_message` entries with reminders of an agent. */
export const REMINDER_TYPE = "skein.reminder";

const REMINDER_START = "Reminder from the application, not from the user:\n\n";

/** The content of a message with a reminder: models see it as a user message, so it says where it comes from. */
export function reminderContent(text: string): string {
  return `${REMINDER_START}${text}`;
}

/** Whether a message is a reminder of the application, and not something that a user said. */
export function isReminder({ role, content }: Message): boolean {
  return role === "user" && typeof content === "string" && content.startsWith(REMINDER_START);
}
