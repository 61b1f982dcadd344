import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from nalm import NAU, NMU, formula, penalty, project_, ramp, round_


class Arithmetic(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(NAU(4, 2), NMU(2, 1))

    def training_step(self, batch):
        x, y = batch
        error = nn.functional.mse_loss(self.model(x), y)
        return error + 10 * ramp(self.global_step, 640, 1120) * penalty(self.model)

    def configure_optimizers(self):
        optimiser = torch.optim.Adam(self.parameters(), lr=1e-2)
        optimiser.register_step_post_hook(lambda *_: project_(self.model))
        return optimiser


torch.manual_seed(0)
x = 2 * torch.rand(2048, 4)
y = (x[:, :2].sum(1) * x[:, 2:].sum(1)).unsqueeze(1)
arithmetic = Arithmetic()
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = lightning.Trainer(max_epochs=100, accelerator="cpu", **quiet)
trainer.fit(arithmetic, DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True))
round_(arithmetic.model)
print(formula(arithmetic.model, ["x1", "x2", "x3", "x4"])[0])
