import torch
from skorch import NeuralNetRegressor
from torch import nn

from nalm import NAU, NMU, formula, penalty, project_, ramp, round_


class Arithmetic(NeuralNetRegressor):
    def get_loss(self, y_pred, y_true, *args, **options):
        share = ramp(len(self.history), 40, 70)  # epochs
        return super().get_loss(y_pred, y_true, *args, **options) + 10 * share * penalty(self.module_)

    def train_step(self, *args, **options):
        step = super().train_step(*args, **options)
        project_(self.module_)
        return step


torch.manual_seed(0)
x = 2 * torch.rand(2048, 4)
y = (x[:, :2].sum(1) * x[:, 2:].sum(1)).unsqueeze(1)
model = nn.Sequential(NAU(4, 2), NMU(2, 1))
net = Arithmetic(model, optimizer=torch.optim.Adam, lr=1e-2, max_epochs=100, train_split=None, verbose=0)
net.fit(x.numpy(), y.numpy())
round_(net.module_)
print(formula(net.module_, ["x1", "x2", "x3", "x4"])[0])
print(net.predict(torch.tensor([[30.0, 0.0, 40.0, 0.0]]).numpy()))
