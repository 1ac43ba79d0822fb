import { encode, type Call } from "./call.js";
import { isPetBatch } from "./checks.js";
import { checkRules, type CallOptions } from "./options.js";
import { Scope } from "./scope.js";
import type { Transport } from "./transport.js";
import type { NewPet, Pet, PetBatch } from "./types.js";

/** How many pets can be added at once. */
const maxBatch = 100;

/** Options of `importPets`. The timeout is for the whole import. */
export interface ImportOptions extends Pick<CallOptions, "signal" | "timeout"> {
  /** Makes this another import than those of the same pets with another salt. */
  salt?: string;
  /** Called after every batch with the number of pets that have been added so far. */
  onBatch?: (added: number) => void;
}

/** The call that adds pets at once. */
export function batchCall(pets: NewPet[], operation = "createPetBatch"): Call<PetBatch> {
  return { operation, method: "POST", path: "/pets/batch", body: { pets }, repeat: "replayed", check: isPetBatch(pets.length) };
}

/** Adds pets in batches whose keys are the same whenever the same pets are added. */
export async function importPets(transport: Transport, pets: NewPet[], options: ImportOptions): Promise<Pet[]> {
  const { salt = "", onBatch, ...callOptions } = options;
  const origin = { operation: "importPets" };
  checkRules([[crypto.subtle, "importPets doesn't work on pages without https, where browsers have no crypto.subtle"]], origin);
  const input = new TextEncoder().encode(encode([salt, pets], origin));
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", input));
  const hex = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const added: Pet[] = [];
  const scope = new Scope(callOptions);
  try {
    for (let number = 1; added.length < pets.length; number++) {
      const batch = pets.slice(added.length, added.length + maxBatch);
      const idempotencyKey = `import-${hex}-${number}-${batch.length}`;
      const { value } = await transport.do(batchCall(batch, "importPets"), { ...callOptions, idempotencyKey }, scope);
      added.push(...value.pets);
      onBatch?.(added.length);
    }
  } finally {
    scope.close();
  }
  return added;
}
