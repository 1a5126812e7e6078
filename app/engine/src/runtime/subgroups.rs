//! Subgroups: requests them and finds the subgroup size if it is uniform. wgpu does not request subgroups from a
//! browser (gfx-rs/wgpu#10146), so on the web wgpu's device request passes through here.

use potluck_shaders::Lanes;

/// Runs `request`, which asks for a device, and adds subgroups if the adapter supports them.
#[cfg(not(target_arch = "wasm32"))]
pub fn with_subgroups<T>(request: impl FnOnce() -> T) -> T {
    request()
}

#[cfg(target_arch = "wasm32")]
pub use browser::with_subgroups;

/// The device's subgroup size, if the device can use subgroups and the size is uniform.
pub fn lanes(info: &wgpu::AdapterInfo, device: &wgpu::Device) -> Option<Lanes> {
    Lanes::of(info.subgroup_min_size, info.subgroup_max_size).filter(|_| usable(device))
}

fn usable(device: &wgpu::Device) -> bool {
    #[cfg(not(target_arch = "wasm32"))]
    return device.features().contains(wgpu::Features::SUBGROUP);
    #[cfg(target_arch = "wasm32")]
    return device.as_webgpu().is_some_and(|device| browser::has_subgroups(device.as_ref()));
}

/// Minimum subgroup size if the device can use subgroups, otherwise 1.
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

    /// Whether an adapter or a device supports subgroups.
    pub fn has_subgroups(owner: &JsValue) -> bool {
        let Some(features) = get(owner, "features") else { return false };
        let has = get(&features, "has").and_then(|has| has.dyn_into::<Function>().ok());
        has.and_then(|has| has.call1(&features, &FEATURE.into()).ok()).is_some_and(|answer| answer.is_truthy())
    }

    /// Adds subgroups to the features of a device request.
    fn add(adapter: &JsValue, arguments: &Array) {
        if has_subgroups(adapter)
            && let Some(wanted) = get(&arguments.get(0), "requiredFeatures")
            && let Ok(wanted) = wanted.dyn_into::<Array>()
        {
            wanted.push(&FEATURE.into());
        }
    }

    /// Runs `request`, which asks for a device, and adds subgroups if the adapter supports them. The method that all
    /// adapters share is replaced only during the call.
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
