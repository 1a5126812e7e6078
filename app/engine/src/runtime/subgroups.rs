//! Subgroups of a device: their size if all have the same, and asking for them. wgpu asks no browser for them
//! (gfx-rs/wgpu#10146), so there its request for a device passes through here.

use potluck_shaders::Lanes;

/// Asks for a device by `request`, with subgroups where the adapter has them.
#[cfg(not(target_arch = "wasm32"))]
pub fn with_subgroups<T>(request: impl FnOnce() -> T) -> T {
    request()
}

#[cfg(target_arch = "wasm32")]
pub use browser::with_subgroups;

/// Threads of the device's subgroups, if it may use them and all have the same number.
pub fn lanes(info: &wgpu::AdapterInfo, device: &wgpu::Device) -> Option<Lanes> {
    Lanes::of(info.subgroup_min_size, info.subgroup_max_size).filter(|_| usable(device))
}

fn usable(device: &wgpu::Device) -> bool {
    #[cfg(not(target_arch = "wasm32"))]
    return device.features().contains(wgpu::Features::SUBGROUP);
    #[cfg(target_arch = "wasm32")]
    return device.as_webgpu().is_some_and(|device| browser::has_subgroups(device.as_ref()));
}

/// Threads that its subgroups have at least, if the device may use them; 1 if not.
pub fn min(info: &wgpu::AdapterInfo, device: &wgpu::Device) -> u32 {
    if usable(device) { info.subgroup_min_size.max(1) } else { 1 }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use js_sys::{Array, Function, Object, Proxy, Reflect};
    use wasm_bindgen::closure::Closure;
    use wasm_bindgen::{JsCast, JsValue};

    const FEATURE: &str = "subgroups";
    const REQUEST: &str = "requestDevice";

    fn get(object: &JsValue, key: &str) -> Option<JsValue> {
        Reflect::get(object, &key.into()).ok().filter(|value| !value.is_undefined() && !value.is_null())
    }

    /// Whether an adapter or a device has them.
    pub fn has_subgroups(owner: &JsValue) -> bool {
        let Some(features) = get(owner, "features") else { return false };
        let has = get(&features, "has").and_then(|has| has.dyn_into::<Function>().ok());
        has.and_then(|has| has.call1(&features, &FEATURE.into()).ok()).is_some_and(|answer| answer.is_truthy())
    }

    /// Adds them to the features that a device is asked for.
    fn add(adapter: &JsValue, arguments: &Array) {
        if has_subgroups(adapter)
            && let Some(wanted) = get(&arguments.get(0), "requiredFeatures")
            && let Ok(wanted) = wanted.dyn_into::<Array>()
        {
            wanted.push(&FEATURE.into());
        }
    }

    /// Asks for a device by `request`, with subgroups where the adapter has them. The method of all adapters is another one only
    /// for as long as the call takes.
    pub fn with_subgroups<T>(request: impl FnOnce() -> T) -> T {
        let prototype = get(&js_sys::global(), "GPUAdapter").and_then(|class| get(&class, "prototype"));
        let method = prototype.as_ref().and_then(|prototype| get(prototype, REQUEST));
        let (Some(prototype), Some(method)) = (prototype, method.and_then(|method| method.dyn_into::<Function>().ok()))
        else {
            return request();
        };
        let pass = Closure::<dyn Fn(Function, JsValue, Array) -> Result<JsValue, JsValue>>::new(
            |method: Function, adapter: JsValue, arguments: Array| {
                add(&adapter, &arguments);
                Reflect::apply(&method, &adapter, &arguments)
            },
        );
        let handler = Object::new();
        let replace = |by: &JsValue| Reflect::set(&prototype, &REQUEST.into(), by).is_ok();
        let replaced = Reflect::set(&handler, &"apply".into(), pass.as_ref()).is_ok()
            && replace(Proxy::new(&method, &handler).as_ref());
        let requested = request();
        if replaced {
            replace(&method);
        }
        requested
    }
}
