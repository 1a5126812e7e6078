//! Creates pipelines before the first token. A browser compiles them in parallel and without blocking the worker. wgpu
//! has no asynchronous creation, so the raw device compiles the same WGSL first and wgpu's call then hits the browser's
//! cache.

use potluck_shaders::Kernel;

use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;

impl Engine {
    /// True if every pipeline that the held units need exists, so that [`Engine::prepare`] has nothing to do.
    pub fn is_prepared(&self) -> bool {
        let core = self.inner.core.borrow();
        core.model.kernels_in_use().into_iter().all(|kernel| core.recording().has(kernel))
    }

    /// True if every pipeline exists that the units need which are still to be loaded. Pipelines of resident units may be missing:
    /// measuring changes which of them are used.
    pub fn is_prepared_for_missing(&self) -> bool {
        let core = self.inner.core.borrow();
        let missing = core.model.weights.missing();
        core.model.kernels_of(&missing).into_iter().all(|kernel| core.recording().has(kernel))
    }

    /// Creates every pipeline that the held units need. Call it after [`Engine::reserve`]; otherwise the first work
    /// pays for compilation.
    ///
    /// # Errors
    /// The device is lost, or a kernel does not compile.
    pub async fn prepare(&self) -> Result<(), EngineError> {
        let kernels: Vec<Kernel> = {
            let core = self.inner.core.borrow();
            core.check_alive()?;
            core.model.kernels_in_use().into_iter().filter(|kernel| !core.recording().has(*kernel)).collect()
        };
        self.compile(kernels).await
    }

    /// Creates pipelines.
    pub(crate) async fn compile(&self, kernels: Vec<Kernel>) -> Result<(), EngineError> {
        #[cfg(target_arch = "wasm32")]
        let compiled = {
            let gpu = self.inner.core.borrow().model.gpu.clone();
            raw::compile(&gpu.device, &kernels).await
        };
        for kernel in kernels {
            {
                let mut core = self.inner.core.borrow_mut();
                let (_, recording) = core.parts();
                recording.pipeline(kernel);
                // Another engine of this device might take it while it has its turn.
                if let Some(error) = core.model.gpu.take_error() {
                    return Err(EngineError::Gpu(error));
                }
            }
            self.give_way().await;
        }
        // Keep the compiled pipelines until wgpu's calls have hit the cache.
        #[cfg(target_arch = "wasm32")]
        drop(compiled);
        let core = self.inner.core.borrow();
        match core.model.gpu.take_error() {
            Some(error) => Err(EngineError::Gpu(error)),
            None => core.check_alive(),
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod raw {
    use js_sys::{Array, Function, Object, Promise, Reflect};
    use potluck_shaders::{Access, Kernel};
    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_futures::JsFuture;

    /// Calls a method with one argument.
    fn call(object: &JsValue, method: &str, argument: &JsValue) -> Result<JsValue, JsValue> {
        Reflect::get(object, &method.into())?.dyn_into::<Function>()?.call1(object, argument)
    }

    fn object(fields: &[(&str, JsValue)]) -> Result<JsValue, JsValue> {
        let object = Object::new();
        for (key, value) in fields {
            Reflect::set(&object, &(*key).into(), value)?;
        }
        Ok(object.into())
    }

    /// Compiles all kernels concurrently. The returned objects keep them in the browser's cache. Failures are left to
    /// wgpu's own call, which reports them.
    pub async fn compile(device: &wgpu::Device, kernels: &[Kernel]) -> Vec<JsValue> {
        let Some(raw) = device.as_webgpu() else { return Vec::new() };
        let raw: &JsValue = raw.as_ref();
        let promises: Vec<Promise> = kernels.iter().filter_map(|&kernel| begin(raw, kernel).ok()).collect();
        let mut made = Vec::new();
        for promise in promises {
            if let Ok(pipeline) = JsFuture::from(promise).await {
                made.push(pipeline);
            }
        }
        made
    }

    fn begin(device: &JsValue, kernel: Kernel) -> Result<Promise, JsValue> {
        let module = call(
            device,
            "createShaderModule",
            &object(&[("code", crate::runtime::pipelines::source(kernel).into())])?,
        )?;
        let entries = Array::new();
        let uniform = object(&[("type", "uniform".into()), ("hasDynamicOffset", true.into())])?;
        entries.push(&object(&[("binding", 0.into()), ("visibility", 4.into()), ("buffer", uniform)])?);
        for (binding, access) in (1..).zip(kernel.bindings()) {
            let kind = if access == Access::Read { "read-only-storage" } else { "storage" };
            let buffer = object(&[("type", kind.into())])?;
            entries.push(&object(&[
                ("binding", JsValue::from(binding)),
                ("visibility", 4.into()),
                ("buffer", buffer),
            ])?);
        }
        let group = call(device, "createBindGroupLayout", &object(&[("entries", entries.into())])?)?;
        let groups = object(&[("bindGroupLayouts", Array::of1(&group).into())])?;
        let layout = call(device, "createPipelineLayout", &groups)?;
        let compute = object(&[("module", module), ("entryPoint", Kernel::ENTRY.into())])?;
        let descriptor = object(&[("layout", layout), ("compute", compute)])?;
        call(device, "createComputePipelineAsync", &descriptor)?.dyn_into()
    }
}
