import { DEFAULT_NAMESPACE } from "../../domain/ids.js";
import { CommandError } from "../io.js";
import type { CredentialsFile } from "./credentials-file.js";
import type { RegisterTask } from "./plan.js";

export interface ConsentContext {
  readonly file: CredentialsFile | undefined;
  readonly namespace: string;
  /** Says no where nobody can be asked. */
  readonly agrees: (question: string) => Promise<boolean>;
}

/** What was decided about a server's secret header. */
export interface Decision {
  /** The credential to name in Register; empty for none. */
  readonly credential: string;
  /** Whether the registry has to read its file again before it knows it. */
  readonly written: boolean;
  readonly notes: readonly string[];
}

/** Makes a named credential of a header, with the operator's consent. No sentence holds a value. */
export async function decide({ serverId, url, secret }: RegisterTask, context: ConsentContext): Promise<Decision> {
  if (!secret) return { credential: "", written: false, notes: [] };
  const { file, agrees } = context;
  const without = (why: string): Decision => ({
    credential: "",
    written: false,
    notes: [`registered without its header ${secret.header}: ${why}`],
  });
  if (!file)
    return without("name the registry's --upstream-credentials file in --credentials-file to make a credential of it");
  if (file.has(serverId)) {
    return {
      credential: serverId,
      written: false,
      notes: [`the credential ${serverId} is in ${file.path} already, and is kept`],
    };
  }
  const host = new URL(url).hostname;
  if (
    !(await agrees(`Write the credential ${serverId} (header ${secret.header}, for ${host} only) to ${file.path}?`))
  ) {
    return without("nobody agreed to write it to the credentials file (answer y, or give --yes)");
  }
  try {
    file.add({ name: serverId, namespace: context.namespace || DEFAULT_NAMESPACE, host, secret });
  } catch (error) {
    if (error instanceof CommandError) return without(error.message);
    return without(`${file.path} cannot be written: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
  return { credential: serverId, written: true, notes: [writtenNote(serverId, secret.source, file)] };
}

function writtenNote(
  name: string,
  source: NonNullable<RegisterTask["secret"]>["source"],
  file: CredentialsFile,
): string {
  const from =
    source.kind === "env"
      ? `set ${source.name} in the registry's environment`
      : `its value is in ${file.secretPath(name)}`;
  return `the credential ${name} was written to ${file.path}; ${from}`;
}
