import { z } from "zod";
import { ALL_PROGRAMS } from "../../../interop/formats/find-programs.ts";
import type { FormatName } from "../../../interop/formats/foreign-format.ts";
import { FOREIGN_FORMATS } from "../../../interop/formats/formats.ts";
import type { ProgramsView, ProgramView } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { list, named } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";

const text = z.string();
const program = named<ProgramView>(
  "Program",
  z.object({
    name: text,
    title: text,
    sessions: z.number().nullable(),
    latestAt: text.nullable(),
    exportCommand: text.nullable(),
    progress: z
      .object({
        state: z.enum(["queued", "importing", "following", "failed"]),
        read: z.number(),
        files: z.number(),
        problem: text.nullable(),
      })
      .nullable(),
  }),
);
const programsView = named<ProgramsView>("Programs", z.object({ offered: z.boolean(), programs: z.array(program) }));

const importRequest = named<{ readonly programs?: readonly FormatName[] }>(
  "ImportPrograms",
  z.strictObject({
    programs: list(z.enum(FOREIGN_FORMATS.map(({ name }) => name)), FOREIGN_FORMATS.length).optional(),
  }),
);

/** Adds the routes about the sessions of other programs on the server's machine. */
export function mountPrograms(app: ServerApp, { programs }: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/programs",
    operationId: "listPrograms",
    summary:
      "The programs on this machine whose sessions can be imported; only a server for one local user offers them.",
    answers: { 200: { description: "The programs, and the progress of their imports.", schema: programsView } },
    handle: async () => answer(await viewOf(programs)),
  });
  route(app, {
    method: "post",
    path: "/api/programs/import",
    operationId: "importPrograms",
    summary:
      "Begins to import and follow the sessions of programs: those that are named, or all that keep sessions in files.",
    body: importRequest,
    answers: { 202: { description: "The imports have begun.", schema: programsView } },
    async handle({ body, caller }) {
      if (programs === null || !caller.admin)
        throw new HttpError("FORBIDDEN", "This server does not import the sessions of other programs.");
      programs.begin((body.programs ?? ALL_PROGRAMS).filter((name) => ALL_PROGRAMS.includes(name)));
      return answer(await viewOf(programs), { status: 202 });
    },
  });
}

async function viewOf(programs: ServerServices["programs"]): Promise<ProgramsView> {
  return programs === null ? { offered: false, programs: [] } : { offered: true, programs: await programs.programs() };
}
