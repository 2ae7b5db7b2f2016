import { FOREIGN_FORMATS, foreignFormat, type WriteReport, writeForeign } from "../../../interop/formats/index.ts";
import { type CommandContext, textOption } from "../../command.ts";
import { counted } from "../../terminal.ts";
import { findSession } from "../../options/session-reference.ts";
import { batches, refuseExisting, writeNewFile, writingOf } from "./write-new-file.ts";

/** The names of the programs whose formats can be written. */
export const FOREIGN_NAMES: readonly string[] = FOREIGN_FORMATS.map(({ name }) => name);

/** Exports a session in the format of the program that `--to` names. */
export async function exportForeign(context: CommandContext, output: string | undefined): Promise<number> {
  const { values, signal } = context;
  const replace = values["force"] === true;
  if (output !== undefined && !replace) await refuseExisting(output);
  await using store = await context.openStore();
  const head = await findSession(store, context.positionals[0] as string);
  const cwd = textOption(values, "cwd");
  const writing = await writeForeign(foreignFormat(textOption(values, "to") ?? ""), store, head.header.id, {
    sanitize: values["sanitize"] === true,
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (output === undefined) {
    for await (const batch of batches(writing.pieces, signal)) await context.write(batch);
    for (const line of reportLines(writing.report, values["sanitize"] === true)) context.fail(line);
    return 0;
  }
  const bytes = await writeNewFile(output, batches(writing.pieces, signal), writingOf(values));
  const [session, format] = [head.header.id, textOption(values, "to")];
  if (context.json) context.printJson({ session, format, output, bytes, report: reportJson(writing.report) });
  else {
    context.print(`${output}: a session of ${format}, ${bytes} bytes.`);
    for (const line of reportLines(writing.report, values["sanitize"] === true)) context.print(line);
  }
  return 0;
}

/** The lines about an export that a person should know. */
export function reportLines(report: WriteReport, sanitized: boolean): string[] {
  const lines: string[] = [];
  const omitted = [...report.omitted].map(([type, count]) => `${count} ${type}`).join(", ");
  if (omitted !== "") lines.push(`The format cannot hold some entries; they were omitted: ${omitted}.`);
  const secrets = counted(report.secrets, "text that looks like a secret", "texts that look like secrets");
  if (report.secrets > 0 && sanitized) lines.push(`It was written without ${secrets}.`);
  if (report.secrets > 0 && !sanitized) lines.push(`It holds ${secrets}; --sanitize removes them.`);
  return [...lines, ...report.notes];
}

/** The report as JSON. */
export function reportJson({ written, verbatim, secrets, omitted, notes }: WriteReport): object {
  return { written, verbatim, secrets, omitted: Object.fromEntries(omitted), notes: [...notes] };
}
