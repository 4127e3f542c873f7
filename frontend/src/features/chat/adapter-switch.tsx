import { useReachableModel } from "@/api/models";
import { Select } from "@/ui/select";
import { adapterIn, nameOfAdapter } from "./adapters";
import { useSettings } from "./sampling";

const BASE = "base";

/** Who of a model with adapters answers: its base, or the base with one of them. */
export function AdapterSwitch() {
  const reachable = useReachableModel();
  const settings = useSettings(({ byModel }) => byModel[reachable?.model ?? ""]);
  const loaded = reachable?.loaded;
  if (!loaded || loaded.adapters.length === 0) return null;
  const { model, adapters } = loaded;
  const chosen = adapterIn(settings?.adapter, loaded);
  return (
    <Select
      aria-label="Answered by"
      className="h-9 w-auto min-w-40 max-w-60 max-md:w-28 max-md:min-w-0"
      value={chosen === false ? BASE : `+${chosen}`}
      options={[
        { value: BASE, label: nameOfAdapter(false) },
        ...adapters.map((adapter) => ({ value: `+${adapter}`, label: nameOfAdapter(adapter) })),
      ]}
      onChange={(value) =>
        useSettings.getState().setAdapter(model, value === BASE ? false : value.slice(1))
      }
    />
  );
}
